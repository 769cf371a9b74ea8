// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// What the documentation says of a breaker, with the open time of quickBreaker.
const (
	openTime       = 200 * time.Millisecond
	leastOpenTime  = openTime * 8 / 10 // by jitter
	forcedInterval = 100 * time.Millisecond
	rampWidth      = 32
)

// askers are what has a circuit of its own: one cluster asking one webhook.
type asker struct{ cluster, webhook string }

// asked returns the attempts of each cluster at each hurt webhook that arrived within
// a time, in the order in which they did.
func (rec *record) asked(from, until time.Duration) map[asker][]history.Attempt {
	all := map[asker][]history.Attempt{}
	for _, a := range rec.attempts {
		if a.Arrived >= from && a.Arrived < until && strings.HasPrefix(a.Webhook, "hurt-") {
			k := asker{a.Cluster, a.Webhook}
			all[k] = append(all[k], a)
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(x, y history.Attempt) int { return cmp.Compare(x.Arrived, y.Arrived) })
	}
	return all
}

// circuits are all askers of a world.
func (w *world) circuits() []asker {
	var all []asker
	for _, c := range w.clusters {
		for name := range w.truths {
			if strings.HasPrefix(name, "hurt-") {
				all = append(all, asker{c.Name, name})
			}
		}
	}
	return all
}

// failsBy reports whether the answer names a webhook as failed.
func failsBy(c *history.Call, webhook string) bool {
	return strings.Contains(c.Message+strings.Join(c.Warnings, ""), fmt.Sprintf("failed calling webhook %q", webhook))
}

// Row F11.

// sparedOnOne: soon hardly a review of the resource reaches the webhook that hangs on
// it, and who cannot wait is told so. That others are answered is the model's.
func sparedOnOne(t *findings, w *world, rec *record) {
	from := rec.repaired - 1500*time.Millisecond // ten have failed by then
	resource := map[string]string{}
	sent, open := map[string]int{}, map[string]bool{}
	for _, c := range rec.calls {
		resource[c.UID] = c.Resource
		if c.Sent >= from && c.Resource == deployments.Resource {
			sent[c.Cluster]++
			open[c.Cluster] = open[c.Cluster] || c.Code == 503 && strings.Contains(c.Message, string(history.BreakerOpen))
		}
	}
	arrived := map[asker]int{}
	for who, list := range rec.asked(from, rec.repaired) { // then those are sent that wait
		for _, a := range list {
			if resource[a.UID] == deployments.Resource {
				arrived[who]++
			}
		}
	}
	for _, who := range w.circuits() {
		if n, calls := arrived[who], sent[who.cluster]; calls == 0 || n*3 > calls {
			t.Errorf("of %d reviews of deployments that it hangs on, %s was sent %d by %s", calls, who.webhook, n, who.cluster)
		}
		if !open[who.cluster] {
			t.Errorf("no call of %s was told that a breaker is open", who.cluster)
		}
	}
}

// Row F18.

// flapping goes down and up, each for a second, and remembers when. It is down first.
type flapping struct {
	down, up func(*world)
	mu       sync.Mutex
	turns    []turn // down, still down, up, still up: each for half a second
}

// turn is one of them.
type turn struct {
	at       time.Duration
	accepted uint64 // connections that the first Endpoint has seen
}

func (f *flapping) fault(seconds int) func(*world) {
	return func(w *world) {
		f.turns = nil
		w.every(500*time.Millisecond, 2*seconds, func(i int) {
			now := turn{w.now(), w.hurt[0].proxy.Counters().Accepted}
			switch i % 4 {
			case 0:
				f.down(w)
			case 2:
				f.up(w)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.turns = append(f.turns, now)
		})
	}
}

// downs returns the turns of each time that it was down: at its begin, in its middle,
// and at its end.
func (f *flapping) downs() [][]turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all [][]turn
	for i := 0; i+2 < len(f.turns); i += 4 {
		all = append(all, f.turns[i:i+3])
	}
	return all
}

// flappingWhole has every Endpoint answer with errors. A ramp takes longer than it is
// up, so that the first error opens the circuit again.
func flappingWhole(r *row) {
	flap := &flapping{down: behave(script.Behaviour{Form: script.Persuasive}), up: behave(script.Behaviour{})}
	seconds := sized(6, 140)
	r.rate, r.before, r.binding = 30, 300*time.Millisecond, "  breaker: {openTime: 200ms, minRequests: 5}\n"
	r.during, r.fault, r.excuses = time.Duration(seconds)*time.Second, flap.fault(seconds), failing(5, history.HTTPStatus)
	r.check = func(t *findings, w *world, rec *record) {
		downs := flap.downs()
		failsWhileDown(t, downs, rec)
		isSparedWhileDown(t, downs[1:], w, rec)
	}
}

// failsWhileDown: errors are at most the share of the calls that are made while it is
// down, and 5 %. It is down for as long as the callers stand still, too: so late may
// others be to notice.
func failsWhileDown(t *findings, downs [][]turn, rec *record) {
	stall := rec.stall()
	for _, webhook := range []string{hurtFail, hurtIgnore} {
		all, failed := 0, 0
		for _, c := range rec.affected() {
			if c.Exempt || !c.Allowed && !failsBy(&c, hurtFail) { // a denial may come before an error
				continue
			}
			all++
			if failsBy(&c, webhook) && !slices.ContainsFunc(downs, func(d []turn) bool { return c.Sent < d[2].at+stall && c.Done > d[0].at }) {
				failed++
			}
		}
		progress("F18  of %d calls %d have failed by %s while it was up", all, failed, webhook)
		if failed*20 > all {
			t.Errorf("of %d calls %d have failed by %s while it was up: more than 5 %%", all, failed, webhook)
		}
	}
}

// isSparedWhileDown: while it is down it is sent what finds that out, one probe for
// each time that the circuit was open, what is forced, and what was on its way.
func isSparedWhileDown(t *findings, downs [][]turn, w *world, rec *record) {
	for _, down := range downs {
		asked := rec.asked(down[0].at, down[2].at)
		for _, who := range w.circuits() {
			lasts := down[2].at - down[0].at
			most := 1 + probes(lasts) + 1 + int(lasts/forcedInterval) + 2
			if n := len(asked[who]); n > most {
				t.Errorf("%s has asked %s %d times while it was down, at most %d are probes and forced", who.cluster, who.webhook, n, most)
			}
		}
	}
}

// flappingHalf has one of two Endpoints reset connections. Nothing is forced then.
func flappingHalf(r *row) {
	flap := &flapping{down: first(proxy.Fault{ResetOnAccept: true, Sever: true}), up: first(proxy.Fault{})}
	seconds := sized(4, 60)
	r.servers, r.rate, r.before, r.binding = 2, 60, 500*time.Millisecond, quickBreaker
	r.during, r.fault = time.Duration(seconds)*time.Second, flap.fault(seconds)
	r.excuses = []excuse{{causes: unreachable, share: 0.02, cuts: true}}
	r.check = func(t *findings, _ *world, _ *record) { probesAreRare(t, flap.downs()) }
}

// probesAreRare: for each time that a circuit was open there is one connection. The
// circuits of both webhooks have opened in the first half of the time that it is down.
func probesAreRare(t *findings, downs [][]turn) {
	for _, down := range downs {
		most := 2 * probes(down[2].at-down[1].at)
		if n := int(down[2].accepted - down[1].accepted); n > most {
			t.Errorf("%d connections were tried while circuits were open, %d are probes", n, most)
		}
	}
}

// probes returns how often at most a circuit is half-open within a time: each time that
// it is open is twice as long as the one before.
func probes(within time.Duration) int {
	n := 1
	for opens := leastOpenTime; opens < within; opens *= 2 {
		within -= opens
		n++
	}
	return n
}

// Row F19.

// slowAnswer is that of a webhook that has just come back.
var slowAnswer = script.Behaviour{Delay: 120 * time.Millisecond}

// trueWithinASecond: from a second after the first good probe on, 99 % are true.
func trueWithinASecond(t *findings, w *world, rec *record) {
	for name := range w.truths {
		if name == well {
			continue
		}
		probe := never
		for _, a := range rec.attempts {
			if a.Webhook == name && a.Intact && a.Arrived > rec.repaired {
				probe = min(probe, a.Answered)
			}
		}
		all, failed := 0, 0
		for _, c := range rec.calls {
			if c.Exempt || c.Sent < probe+time.Second {
				continue
			}
			all++
			if failsBy(&c, name) {
				failed++
			}
		}
		progress("F19  %s: first good probe %v after the repair; %d of %d calls fail from 1 s later on", name, (probe - rec.repaired).Round(time.Millisecond), failed, all)
		if all == 0 || failed*100 > all {
			t.Errorf("%d of %d calls have failed by %s, 1 s after the first good probe and later", failed, all, name)
		}
	}
}

// allOf makes several checks.
func allOf(checks ...func(*findings, *world, *record)) func(*findings, *world, *record) {
	return func(t *findings, w *world, rec *record) {
		for _, check := range checks {
			check(t, w, rec)
		}
	}
}

// isRamped: while a circuit is not closed again, there are no more reviews under way
// than what has been answered has made place for, beside one that is forced and the
// probe that it has overtaken.
func isRamped(t *findings, w *world, rec *record) {
	asked := rec.asked(rec.repaired+straggling, never)
	for _, who := range w.circuits() {
		list := asked[who]
		for i, a := range list {
			answered, underWay := 0, 1
			for _, before := range list[:i] {
				switch {
				case before.Answered == 0 || before.Answered > a.Arrived:
					underWay++
				case before.Intact:
					answered++
				}
			}
			width := widthAfter(answered)
			if width >= rampWidth {
				break
			}
			if underWay > width+2 {
				t.Errorf("%d reviews of %s are under way to %s after %d answers, the ramp is %d wide", underWay, who.cluster, who.webhook, answered, width)
				break
			}
		}
	}
}

// widthAfter returns how wide a ramp is after so many answers, that of the probe first.
func widthAfter(answers int) int {
	width := 1
	for answers--; answers >= width && width < rampWidth; width *= 2 {
		answers -= width
	}
	return width
}

// straggling is how long after the repair what was on its way before may arrive.
const straggling = 10 * time.Millisecond

// Row F20.

// fewWait: while probes hang, no more of a cluster's calls wait than may. The others
// are answered at once. What the callers did not notice at once was no waiting.
func fewWait(t *findings, _ *world, rec *record) {
	const most = 16 + 4 // and those that probe, or are forced, of two webhooks
	begin, late := rec.broken+2*time.Second, map[string][]history.Call{}
	for _, c := range rec.affected() {
		if c.Done -= c.Stall; c.Sent > begin && c.Done-c.Sent > atOnce {
			late[c.Cluster] = append(late[c.Cluster], c)
		}
	}
	for cluster, calls := range late {
		for _, c := range calls {
			together := 0
			for _, other := range calls {
				if other.Sent <= c.Sent && c.Sent < other.Done {
					together++
				}
			}
			if together > most {
				t.Errorf("%d calls of %s wait at a time", together, cluster)
				return
			}
		}
	}
}

// atOnce is what no call takes that does not wait for a webhook.
const atOnce = 500 * time.Millisecond

// othersAreRefusedAtOnce: who does not wait is told as soon as who is exempt.
func othersAreRefusedAtOnce(t *findings, _ *world, rec *record) {
	const bound = 5 * time.Millisecond
	var refused, exempt []time.Duration
	for _, c := range rec.affected() {
		took := c.Done - c.Sent - c.Stall
		switch {
		case c.Sent < rec.broken+2*time.Second:
		case c.Exempt:
			exempt = append(exempt, took)
		case c.Code == 503 && strings.Contains(c.Message, string(history.BreakerOpen)) && took < atOnce:
			refused = append(refused, took)
		}
	}
	if len(refused) < 10 || len(exempt) == 0 {
		t.Fatalf("%d calls were refused, %d are exempt", len(refused), len(exempt))
	}
	slices.Sort(refused)
	slices.Sort(exempt)
	r, e := quantile(refused, 0.5), quantile(exempt, 0.5)
	progress("F20  %d calls refused within %v, exempt ones answered within %v (p50)", len(refused), rounded(r), rounded(e))
	if r > e+bound {
		t.Errorf("half of those that may not wait are told after more than %v, exempt calls are answered within %v", r, e)
	}
}

// probedAgain: once one attempt after the other has hung, there are probes still, beside
// the one at a time that is forced.
func probedAgain(t *findings, w *world, rec *record) {
	const timeout = time.Second
	asked := rec.asked(rec.broken+2*timeout+2*openTime, rec.repaired)
	for _, who := range w.circuits() {
		list, probed := asked[who], false
		for i := 1; i < len(list); i++ {
			probed = probed || list[i].Arrived-list[i-1].Arrived < timeout-arrivalNoise
		}
		if !probed {
			t.Errorf("%s: no probe of %s follows those that hang, %d attempts are forced", who.webhook, who.cluster, len(list))
		}
	}
}

// arrivalNoise is how much longer than another's an attempt's way may take.
const arrivalNoise = 100 * time.Millisecond

// Row F21.

// twins are one webhook for each kind of call. Whoever took the error for the answer
// would allow what is denied, and deny what is allowed.
var twins = []history.Webhook{
	{Name: hurtIgnore, Phase: history.Validating, FailurePolicy: history.Ignore, SideEffects: history.NoSideEffects, Timeout: time.Second, Truth: unwilling},
	{Name: hurtFail, Phase: history.Mutating, FailurePolicy: history.Fail, SideEffects: history.NoSideEffects, Timeout: time.Second, Truth: script.Willing},
}

// oneTwinOpen: the Endpoint that answers badly has an open circuit after ten answers.
// Then calls fail only when it is tried, and they come too late for the other's answer.
// There is never no Endpoint.
var oneTwinOpen = []excuse{
	{causes: []history.Cause{history.HTTPStatus, history.BadAnswer}, until: openAfter},
	{causes: []history.Cause{history.HTTPStatus, history.BadAnswer}, from: openAfter, share: 0.05},
}

func unwilling(string) history.Answer { return history.Answer{Code: 403, Message: "no"} }

// unequalTwins answer late, the worse one first: with an error where the truth is to
// deny, with no review where it is to allow.
func unequalTwins(w *world) {
	soon, late := 60*time.Millisecond, 200*time.Millisecond
	w.hurt[0].Behave(hurtIgnore, script.Behaviour{Delay: soon, Form: script.Persuasive})
	w.hurt[0].Behave(hurtFail, script.Behaviour{Delay: soon, Form: script.NotJSON})
	w.hurt[1].Behave(hurtIgnore, script.Behaviour{Delay: late})
	w.hurt[1].Behave(hurtFail, script.Behaviour{Delay: late})
}

// twinsAreHeard: where both twins were asked, and the worse one answered first, the truth
// of the other counts.
func twinsAreHeard(t *findings, _ *world, rec *record) {
	asked := map[string][]history.Attempt{}
	for _, a := range rec.attempts {
		asked[a.UID] = append(asked[a.UID], a)
	}
	heard := map[history.Phase]int{}
	for _, c := range rec.affected() {
		both := asked[c.UID] // in the order of the Endpoints
		if len(both) != 2 || both[0].Intact || !both[1].Intact || both[1].Answered < both[0].Answered {
			continue
		}
		heard[c.Phase]++
		if c.Allowed != (c.Phase == history.Mutating) || failsBy(&c, both[0].Webhook) {
			t.Errorf("an error, or an answer that is none, has beaten a verdict:\n%s", rec.story(c.UID))
		}
	}
	for _, phase := range []history.Phase{history.Validating, history.Mutating} {
		if heard[phase] < 3 {
			t.Errorf("only %d %s calls had a twin that answered later", heard[phase], phase)
		}
	}
	progress("F21  %d denials after an error, %d allows after no review", heard[history.Validating], heard[history.Mutating])
}

// circuitsOpened are the times at which circuits were first seen not to be closed; 0:
// they never were.
type circuitsOpened struct {
	endpoint atomic.Int64 // an Endpoint's own, for every cluster
	cluster  atomic.Int64 // any of one cluster
}

// watchCircuits looks at the circuits from now on. Answers do not show every circuit
// that is open: calls may wait for it, or be forced through.
func watchCircuits(w *world) {
	w.opened.endpoint.Store(0)
	w.opened.cluster.Store(0)
	w.every(50*time.Millisecond, endless, func(int) {
		for family, opened := range map[string]*atomic.Int64{"dispatcher_breaker_state": &w.opened.endpoint, "dispatcher_breaker_clusters": &w.opened.cluster} {
			if w.metric(w.servers[0], family) > 0 {
				opened.CompareAndSwap(0, int64(w.now()))
			}
		}
	})
}

// noneForAll: nothing that one cluster does opens a circuit that concerns every cluster.
func noneForAll(t *findings, w *world, _ *record) {
	if at := w.opened.endpoint.Load(); at > 0 {
		t.Errorf("an Endpoint's circuit is open for every cluster %v after the start", time.Duration(at))
	}
}

// Row F33.

// onlyTheDeadOpen: what this process did not hear while it stood still is nobody's
// fault. What is dead afterwards opens a breaker as ever.
func onlyTheDeadOpen(t *findings, w *world, rec *record) {
	for _, opened := range []*atomic.Int64{&w.opened.endpoint, &w.opened.cluster} {
		if at := time.Duration(opened.Load()); at > w.paused && at < rec.repaired {
			t.Errorf("a breaker opened by our own pause, %v after it began", at-w.paused)
		}
	}
	missed, opened := 0, false
	for _, c := range rec.calls {
		said := c.Message + strings.Join(c.Warnings, "")
		open := strings.Contains(said, string(history.BreakerOpen))
		if open && c.Done < rec.repaired {
			t.Errorf("a breaker opened by our own pause:\n%s", rec.story(c.UID))
			return
		}
		if c.Done < rec.repaired && strings.Contains(said, string(history.Timeout)) {
			missed++
		}
		opened = opened || open
	}
	progress("F33  %d calls have missed their answer", missed)
	if missed < 8 {
		t.Errorf("only %d calls have missed their answer", missed)
	}
	if !opened {
		t.Error("no breaker opened for webhooks that are dead")
	}
}
