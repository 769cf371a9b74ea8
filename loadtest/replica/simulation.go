// SPDX-License-Identifier: Apache-2.0

// Package replica simulates how API servers spread their calls over replicas
// behind a balancer of connections, and tests it with the shipped binary.
package replica

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Simulation is a fleet of callers and replicas. Callers are API servers: each
// keeps at most 25 idle connections for 90 s and uses the most recent one; one
// that is in use is not shared. The balancer sends each new connection to a
// replica at random.
type Simulation struct {
	Seed uint64
	Age  time.Duration // of connections, plus or minus a half; 0: as old as they like
	// Joined is within what time connections end that are older than the replicas which
	// join After; 0: nobody says that they have.
	Joined     time.Duration
	Clusters   int           // their rates fall off as 1/rank
	Even       bool          // their rates are the same
	APIServers int           // of each cluster
	Rate       float64       // calls per second of all together
	Call       time.Duration // how long a call takes
	Replicas   int
	Scaled     int           // replicas from After on
	After      time.Duration // when the others join
	Look       []time.Duration
	Window     time.Duration // over which the calls are counted at each look
}

// Share is how uneven the replicas are: the calls of the one that has most, and of
// the one that has least, over the mean.
type Share struct {
	At       time.Duration // since the others joined
	Max, Min float64
}

// Result is what a Simulation comes to.
type Result struct {
	Shares         []Share
	DialsPerSecond float64 // while the number of replicas stays, before After
	Connections    int     // at the end
}

const (
	maxIdle     = 25
	idleTimeout = 90 * time.Second
)

type connection struct {
	replica  int
	opened   time.Duration
	chance   float64
	expires  time.Duration
	idleFrom time.Duration
}

// apiServer keeps its idle connections, the most recent last.
type apiServer struct {
	rate float64
	idle []connection
	busy int
}

// event is a call that begins or ends.
type event struct {
	at     time.Duration
	caller int
	ends   bool
	on     connection
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// run is a Simulation that goes on.
type run struct {
	Simulation
	random  *rand.Rand
	queue   events
	callers []apiServer
	now     time.Duration
	dials   int
	counts  []int // calls by replica since the window began
}

// Run simulates until the last look. It is repeatable.
func (s Simulation) Run() Result {
	r := &run{Simulation: s, random: rand.New(rand.NewPCG(s.Seed, 0))}
	r.start()
	var result Result
	r.until(s.After)
	result.DialsPerSecond = r.dialRate()
	for _, look := range s.Look {
		r.until(s.After + look - s.Window)
		r.counts = make([]int, s.Scaled)
		r.until(s.After + look)
		mean := float64(sum(r.counts)) / float64(s.Scaled)
		result.Shares = append(result.Shares, Share{look, float64(slices.Max(r.counts)) / mean, float64(slices.Min(r.counts)) / mean})
	}
	for i := range r.callers {
		r.prune(&r.callers[i])
		result.Connections += len(r.callers[i].idle) + r.callers[i].busy
	}
	return result
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (r *run) start() {
	r.counts = make([]int, max(r.Replicas, r.Scaled))
	weight := func(rank int) float64 {
		if r.Even {
			return 1
		}
		return 1 / float64(rank+1)
	}
	var weights float64
	for rank := range r.Clusters {
		weights += weight(rank)
	}
	for rank := range r.Clusters {
		rate := r.Rate / weights * weight(rank) / float64(r.APIServers)
		for range r.APIServers {
			r.callers = append(r.callers, apiServer{rate: rate})
			r.next(len(r.callers) - 1)
		}
	}
}

// warm is how long dials are not counted: everything is new then.
const warm = 3 * time.Minute

func (r *run) dialRate() float64 {
	return float64(r.dials) / (r.After - min(warm, r.After/2)).Seconds()
}

// next has the caller make its next call.
func (r *run) next(caller int) {
	pause := r.random.ExpFloat64() / r.callers[caller].rate
	at := r.now + time.Duration(math.Min(pause, 1e6)*float64(time.Second))
	heap.Push(&r.queue, event{at: at, caller: caller})
}

func (r *run) until(end time.Duration) {
	for r.queue[0].at < end {
		e := heap.Pop(&r.queue).(event)
		r.now = e.at
		if e.ends {
			r.ended(e)
			continue
		}
		r.begin(e.caller)
		r.next(e.caller)
	}
	r.now = end
}

func (r *run) begin(caller int) {
	c := &r.callers[caller]
	r.prune(c)
	var on connection
	if n := len(c.idle); n > 0 {
		on, c.idle = c.idle[n-1], c.idle[:n-1]
	} else {
		on = r.dial()
	}
	c.busy++
	r.counts[on.replica]++
	heap.Push(&r.queue, event{at: r.now + r.Call, caller: caller, ends: true, on: on})
}

func (r *run) dial() connection {
	if r.now >= min(warm, r.After/2) && r.now < r.After {
		r.dials++
	}
	replicas := r.Replicas
	if r.now >= r.After {
		replicas = r.Scaled
	}
	c := connection{replica: r.random.IntN(replicas), opened: r.now, expires: math.MaxInt64}
	if r.Age > 0 || r.Joined > 0 {
		c.chance = r.random.Float64()
	}
	if r.Age > 0 {
		c.expires = r.now + r.Age/2 + time.Duration(c.chance*float64(r.Age))
	}
	return c
}

// ended keeps the connection of a call that has ended, unless the answer says that
// it is closed, or there are enough.
func (r *run) ended(e event) {
	c := &r.callers[e.caller]
	c.busy--
	if r.Joined > 0 && e.on.opened < r.After && r.now >= r.After {
		e.on.expires = min(e.on.expires, r.After+time.Duration(e.on.chance*float64(r.Joined)))
	}
	if r.now >= e.on.expires || len(c.idle) >= maxIdle {
		return
	}
	e.on.idleFrom = r.now
	c.idle = append(c.idle, e.on)
}

// prune drops connections that were idle for too long: those that are least
// recently used come first.
func (r *run) prune(c *apiServer) {
	fresh := slices.IndexFunc(c.idle, func(i connection) bool { return r.now-i.idleFrom < idleTimeout })
	switch {
	case fresh < 0:
		c.idle = c.idle[:0]
	case fresh > 0:
		c.idle = slices.Delete(c.idle, 0, fresh)
	}
}
