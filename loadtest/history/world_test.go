// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"
)

const ms = time.Millisecond

// The span of a simulated run.
const (
	runFor  = 40 * time.Second
	overlap = 200 * ms
)

var (
	clusters  = []string{"berlin", "lagos", "quito"}
	resources = []string{"pods", "deployments", "secrets"}
)

// chance draws a number in [0, 1) for words, the same every time.
func chance(words ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, words...)
	return rand.New(rand.NewPCG(h.Sum64(), 1)).Float64()
}

// randomWorld is three Snapshots, each a change of the one before, and a few
// faults.
func randomWorld(r *rand.Rand) World {
	w := World{Limits: DefaultLimits()}
	pool := randomWebhooks(r)
	for i := range 3 {
		begin := time.Duration(i) * runFor / 3
		s := Snapshot{Hash: fmt.Sprintf("snap%d", i), From: begin, Until: begin + runFor/3 + overlap}
		for j, hook := range pool {
			if j%6 == 2*i+1 { // left out of this one
				continue
			}
			if j%6 == 2*i { // this one has it under another name
				hook.Name = fmt.Sprintf("v%d-%s", i, hook.Name)
				hook.Truth = truth(hook)
			}
			s.Webhooks = append(s.Webhooks, hook)
		}
		w.Snapshots = append(w.Snapshots, s)
	}
	begin := time.Duration(r.Int64N(int64(runFor / 2)))
	w.Sheds = []Span{{Cluster: clusters[r.IntN(3)], From: begin, Until: begin + runFor/4}}
	w.Losses = []Span{{From: begin + 5*time.Second, Until: begin + 6*time.Second}}
	flaky := randomFault(r, w)
	flaky.Causes, flaky.Resources = []Cause{Timeout}, nil
	flaky.MayStillAnswer, flaky.Cuts, flaky.Share = true, true, 0.6
	w.Faults = append(w.Faults, flaky)
	for range 8 {
		if f := randomFault(r, w); f.Webhook != flaky.Webhook {
			w.Faults = append(w.Faults, f)
		}
	}
	return w
}

func randomWebhooks(r *rand.Rand) []Webhook {
	var pool []Webhook
	for _, phase := range []Phase{Validating, Mutating} {
		for i := range 6 {
			hook := Webhook{
				Name:          fmt.Sprintf("%c%d.example.com", phase[0], i),
				Phase:         phase,
				Order:         i,
				FailurePolicy: []Policy{Fail, Ignore}[r.IntN(2)],
				SideEffects:   []SideEffects{NoSideEffects, NoSideEffects, NoneOnDryRun, SomeEffects}[r.IntN(4)],
				Timeout:       []time.Duration{500 * ms, time.Second}[r.IntN(2)],
				Mode:          []Mode{Enforce, Enforce, Enforce, Enforce, Warn, Shadow}[(i+r.IntN(2))%6],
			}
			if i == 2 {
				hook.Clusters = clusters[:2]
			}
			if i == 3 {
				hook.Resources = resources[1:]
			}
			hook.Truth = truth(hook)
			pool = append(pool, hook)
		}
	}
	return pool
}

// truth is a script: mostly allow, sometimes with a patch, deny for some uids,
// nothing usable for a few.
func truth(hook Webhook) func(uid string) Answer {
	name, phase := hook.Name, hook.Phase
	return func(uid string) Answer {
		switch x := chance(name, uid); {
		case x < 0.12:
			return Answer{Code: int32(400 + int(x*100)), Message: fmt.Sprintf("%s says no to %s", name, uid)}
		case x < 0.14:
			return Answer{Cause: HTTPStatus}
		case x < 0.15:
			return Answer{Cause: BadAnswer, Refusal: true}
		case phase == Mutating && x < 0.7:
			return Answer{Allowed: true, Patch: []byte(fmt.Sprintf(`[{"op": "add", "path": "/%s", "value": %q}]`, name, uid))}
		}
		return Answer{Allowed: true}
	}
}

// randomFault is one of the shapes of the fault matrix, at one webhook.
func randomFault(r *rand.Rand, w World) Fault {
	s := w.Snapshots[r.IntN(len(w.Snapshots))]
	shapes := []Fault{
		{Causes: []Cause{Unreachable}},
		{Causes: []Cause{Unreachable, BreakerOpen}},
		{Causes: []Cause{Timeout}},
		{Causes: []Cause{Timeout, BreakerOpen}, Resources: resources[:1]},
		{Causes: []Cause{BreakerOpen}, MayStillAnswer: true, After: 3},
		{Causes: []Cause{BadAnswer}},
		{Causes: []Cause{Unreachable}, MayStillAnswer: true, Cuts: true},
		{Causes: []Cause{Timeout}, MayStillAnswer: true, Cuts: true},
	}
	f := shapes[r.IntN(len(shapes))]
	f.Webhook = s.Webhooks[r.IntN(len(s.Webhooks))].Name
	f.From = time.Duration(r.Int64N(int64(runFor * 3 / 4)))
	f.Until = f.From + runFor/4
	return f
}

// randomCalls is an open loop of n calls.
func randomCalls(r *rand.Rand, n int) []Call {
	calls := make([]Call, n)
	for i := range calls {
		at := time.Duration(i) * (runFor - 5*time.Second) / time.Duration(n)
		uid := fmt.Sprintf("uid-%d-%d", r.Uint32(), i)
		calls[i] = Call{
			UID:      uid,
			Cluster:  clusters[r.IntN(len(clusters))],
			Phase:    []Phase{Validating, Mutating}[r.IntN(2)],
			Resource: resources[r.IntN(len(resources))],
			DryRun:   r.IntN(10) == 0,
			Exempt:   r.IntN(20) == 0,
			FailOpen: r.IntN(20) == 0,
			BodyHash: "body of " + uid,
			Intended: at,
			Sent:     at + time.Duration(r.IntN(3))*ms,
			Timeout:  time.Duration(1+r.IntN(3)) * time.Second,
		}
	}
	return calls
}

// short lists findings, a few of them.
func short(found []Finding) string {
	var b strings.Builder
	for i, f := range found {
		if i == 5 {
			fmt.Fprintf(&b, "... %d in all\n", len(found))
			break
		}
		fmt.Fprintln(&b, f)
	}
	return b.String()
}
