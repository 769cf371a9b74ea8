// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/adversary"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// row is one row of the matrix. Its zero fields mean: two webhooks that are hurt,
// one failing closed and one open, and one that is well; one Endpoint; a timeout
// of a second.
type row struct {
	id, what string
	injected *mutant // an edit of the dispatcher that makes it fail as nothing outside can

	variants []variant // it is played in each of them
	amid     []string  // its bound is for exempt calls, under the faults of these rows

	servers     int    // Endpoints of the hurt webhooks
	timeout     int    // of the hurt webhooks, in seconds
	effects     bool   // they have side effects
	binding     string // more of their binding's spec
	process     string // more of the process's configuration
	descriptors int    // limit of the process
	named       bool   // the hurt webhooks are found by name
	traced      bool   // every admission is traced, to a collector that takes nothing
	refuses     bool   // the collector refuses connections; otherwise it hangs
	hooks       []history.Webhook
	objects     string            // further manifests, of what is decided in the process
	inside      []history.Webhook // what these decide: nobody is called for them
	apis        lists             // each cluster has an API, and that of east lists like that; "": none has

	rate      float64         // of each cluster, per second; 30
	surge     float64         // calls per second of the cluster east on top, under the fault
	surges    []load.Resource // what these are about; nil: resources
	resources []load.Resource
	phases    []history.Phase
	caller    time.Duration // its timeout; 10 s

	// How long all is well, then broken, then repaired.
	before, during, after time.Duration
	begin                 func(w *world) // how webhooks answer as long as all is well
	fault                 func(w *world)
	drive                 func(rec *record, w *world) // the fault lasts until it returns
	repair                func(w *world)

	// What the fault excuses.
	excuses   []excuse
	resource  []string      // of these; nil: all
	settle    time.Duration // how long after the repair a breaker may still be open
	sheds     string        // a cluster that may be shed
	losses    bool
	recovers  time.Duration                            // how long after the fault nothing is excused any more, although it lasts; 0: all is, as long as it lasts
	pause     time.Duration                            // for which the dispatcher stands still
	bunch     int                                      // extra attempts that the fault may hold up, to arrive together
	snapshots func(*world, *record) []history.Snapshot // the configurations of the run; nil: all mean the same

	// An attack, by the cluster east or by a stranger, goes on during the fault.
	// The load is then that of the other clusters, and nothing is excused.
	attack   adversary.Attack
	stranger bool
	memory   int64 // bytes by which the process may grow meanwhile; 0: any
	bytes    int   // of the load's objects
	filler   load.Filler

	// The bound of the answers' times during the fault, beyond those before it; and
	// another one for the time from opens after the fault on.
	within, then, opens time.Duration
	exempts             bool // the bounds are for exempt calls
	compares            bool // the check compares with direct calls of a webhook
	check               func(t *findings, w *world, r *record)
}

// excuse is what a fault excuses for a while, from one time after it on until another
// (0: its end). None outlives it: after the fault is over only what was under way then
// is excused. One without a share is for faults that every call meets as long as they
// last, so that all may fail.
type excuse struct {
	cluster     string // whose calls alone; "": any
	causes      []history.Cause
	from, until time.Duration
	then        bool    // the times are those after the repair, of what the repair breaks
	share       float64 // of the calls; 0: any
	after       int     // calls that must have met the fault before
	cuts        bool    // answers that the webhook has given may not arrive
}

// record is what came of a row.
type record struct {
	calls    []history.Call
	direct   []history.Call // of a webhook that is well, without the dispatcher
	attempts []history.Attempt
	started  time.Duration // when the first call was made
	broken   time.Duration // when the fault was set
	repaired time.Duration
	// descriptors are those that were open before the first call.
	descriptors int

	failures []string // that were seen while the row was played

	tally adversary.Tally
	grown int64 // bytes by which the process grew under an attack, at most
}

// errorf notes a failure. The row may be played again, so that it does not count yet.
func (rec *record) errorf(format string, args ...any) {
	rec.failures = append(rec.failures, fmt.Sprintf(format, args...))
}

func (r *row) endpoints() int { return max(r.servers, 1) }

func (r *row) webhooks() []history.Webhook {
	if r.hooks != nil {
		return r.hooks
	}
	hook := func(order int, name string, policy history.Policy) history.Webhook {
		return history.Webhook{Name: name, Phase: history.Validating, Order: order, FailurePolicy: policy, SideEffects: history.NoSideEffects,
			Timeout: time.Duration(max(r.timeout, 1)) * time.Second, Truth: script.Validating(name)}
	}
	all := []history.Webhook{hook(0, hurtFail, history.Fail), hook(1, hurtIgnore, history.Ignore), hook(2, well, history.Fail)}
	if r.effects {
		all[0].SideEffects, all[1].SideEffects = history.NoneOnDryRun, history.NoneOnDryRun
	}
	return all
}

// deciders are all who have a say: what is in the process before the webhooks.
func (r *row) deciders() []history.Webhook { return slices.Concat(r.inside, r.webhooks()) }

// manifests registers the webhooks, one configuration a phase.
func manifests(all []history.Webhook) []byte {
	var out strings.Builder
	for phase, kind := range map[history.Phase]string{history.Validating: "Validating", history.Mutating: "Mutating"} {
		var list strings.Builder
		for _, h := range all {
			if h.Phase != phase {
				continue
			}
			fmt.Fprintf(&list, `- name: %[1]s
  clientConfig: {url: "https://hooks.example.com/%[5]s"}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
  failurePolicy: %[2]s
  timeoutSeconds: %[3]d
  sideEffects: %[4]s
  admissionReviewVersions: [v1]
`, h.Name, h.FailurePolicy, int(h.Timeout.Seconds()), h.SideEffects, path.Join(h.Name, h.Version))
		}
		if list.Len() > 0 {
			fmt.Fprintf(&out, "---\napiVersion: admissionregistration.k8s.io/v1\nkind: %sWebhookConfiguration\nmetadata: {name: policies}\nwebhooks:\n%s", kind, list.String())
		}
	}
	return []byte(out.String())
}

// exempt is traffic that no webhook is ever asked about (F37).
var exempt = []load.Resource{
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Kind: "Lease", Namespace: "kube-node-lease", User: "system:node:n1", Groups: []string{"system:nodes"}, Operation: "UPDATE", Exempt: true},
	{Version: "v1", Resource: "nodes", SubResource: "status", Kind: "Node", User: "system:node:n1", Groups: []string{"system:nodes"}, Operation: "UPDATE", Exempt: true},
	{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "kube-system", User: "system:serviceaccount:kube-system:job", Exempt: true},
	// From 1.37 on, which is what the clusters of these tests are.
	{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews", Kind: "TokenReview", User: "system:kube-controller-manager", Exempt: true},
}

func (r *row) load(w *world) load.Config {
	resources := r.resources
	if resources == nil {
		resources = []load.Resource{load.Pods, load.Pods, load.Pods, load.Pods, load.Pods, load.Pods}
	}
	clusters := w.clusters
	if r.attack != nil {
		clusters = clusters[1:]
	}
	return load.Config{
		Address: w.front.Addr(), Start: w.start, Clusters: clusters, Bytes: r.bytes, Filler: r.filler, Seed: seed, Prefix: "uid",
		Rate: cmp.Or(r.rate, 30), Duration: r.whole(), Timeout: cmp.Or(r.caller, 10*time.Second),
		Resources: append(slices.Clone(resources), exempt...), Phases: r.phases,
	}
}

// direct begins the uids of calls without a dispatcher.
const direct = "direct"

// direct asks a webhook itself, which is well, all the time.
func (r *row) direct(w *world) load.Config {
	cfg := r.load(w)
	cfg.Address, cfg.Webhook, cfg.Prefix = w.well.Address(), r.webhooks()[0].Name, direct
	cfg.Clusters, cfg.Rate, cfg.Resources = []load.Cluster{{Name: "direct", TLS: w.clusters[0].TLS}}, 30, nil
	return cfg
}

// surging is what the cluster east asks on top.
func (r *row) surging(w *world) load.Config {
	cfg := r.load(w)
	cfg.Clusters, cfg.Rate, cfg.Duration, cfg.Prefix = cfg.Clusters[:1], r.surge, r.broken(), "surge"
	if r.surges != nil {
		cfg.Resources = r.surges
	}
	return cfg
}

func (r *row) whole() time.Duration {
	if r.drive != nil {
		return never
	}
	return r.well() + r.broken() + r.after
}

func (r *row) well() time.Duration { return cmp.Or(r.before, 1500*time.Millisecond) }

// broken is how long the fault lasts: in full size, until there are as many
// affected calls as the contract wants.
func (r *row) broken() time.Duration {
	during := cmp.Or(r.during, 2*time.Second)
	if !full {
		return during
	}
	calls := 10_000.0
	if r.within >= time.Second {
		calls = 1_000
	}
	return max(during, time.Duration(calls/(3*cmp.Or(r.rate, 30))*float64(time.Second)))
}

// run plays the row and returns its record.
func (r *row) run(t *testing.T) (*world, *record) {
	w := newWorld(t, r)
	rec := &record{}
	if r.begin != nil {
		r.begin(w)
	}
	rec.descriptors, _ = descriptors(w.servers[0]) // noLeak says if that does not work
	rec.started = w.now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var runs sync.WaitGroup
	runs.Go(func() { rec.calls = load.Run(ctx, r.load(w)) })
	if r.within > 0 || r.compares {
		runs.Go(func() { rec.direct = load.Run(t.Context(), r.direct(w)) })
	}
	pass(r.well())
	rec.broken = w.now()
	if r.fault != nil {
		r.fault(w)
	}
	var surge []history.Call
	if r.surge > 0 {
		runs.Go(func() { surge = load.Run(t.Context(), r.surging(w)) })
	}
	switch {
	case r.drive != nil:
		r.drive(rec, w)
	case r.attack != nil:
		r.suffer(t, w, rec)
	case r.memory > 0:
		ctx, cancel := context.WithTimeout(t.Context(), r.broken())
		rec.grown = <-w.grows(ctx)
		cancel()
		progress("%-4s the process grew by %d MiB", r.id, rec.grown>>20)
		r.fits(rec)
	default:
		pass(r.broken())
	}
	rec.repaired = w.now()
	if r.repair != nil {
		r.repair(w)
	}
	if r.drive != nil {
		pass(r.after)
		cancel()
	}
	runs.Wait()
	rec.calls = append(rec.calls, surge...)
	for _, s := range w.scripts() {
		rec.attempts = append(rec.attempts, s.Attempts()...)
	}
	rec.attempts = slices.DeleteFunc(rec.attempts, func(a history.Attempt) bool { return strings.HasPrefix(a.UID, direct) })
	if r.attack != nil { // what comes of the attacker's own calls is its affair
		rec.attempts = slices.DeleteFunc(rec.attempts, func(a history.Attempt) bool { return a.Cluster == attacker })
	}
	return w, rec
}

func (w *world) scripts() []*script.Server {
	all := []*script.Server{w.well}
	for _, e := range w.hurt {
		all = append(all, e.Server)
	}
	return all
}

// never is after the end of every run.
const never = time.Hour

// judged is the World that the record is held against.
func (r *row) judged(w *world, rec *record) history.World {
	const edge = 100 * time.Millisecond // around the moment in which a fault is set
	limits := history.DefaultLimits()
	limits.Slack = 500*time.Millisecond + r.pause
	limits.ExtraBurst += 2 + r.bunch // a first attempt counts also if it never arrives
	world := history.World{Limits: limits, Snapshots: r.configurations(w, rec)}
	over := rec.repaired + r.after + r.slowest() // when the last call has ended
	until := over
	if r.repair != nil {
		until = rec.repaired + edge
	}
	if r.recovers > 0 {
		until = rec.broken + r.recovers
	}
	for _, h := range r.deciders() {
		name := h.Name
		if !strings.HasPrefix(name, "hurt-") && !slices.ContainsFunc(r.inside, func(in history.Webhook) bool { return in.Name == name }) {
			continue
		}
		for _, e := range r.excuses {
			begin, end := rec.broken, until
			if e.then {
				begin, end = rec.repaired, over
			}
			if e.until > 0 {
				end = begin + e.until
			}
			world.Faults = append(world.Faults, history.Fault{
				Webhook: name, Cluster: e.cluster, Resources: r.resource, From: begin + e.from - edge, Until: end,
				Causes: e.causes, MayStillAnswer: true, Cuts: e.cuts, Share: e.share, After: e.after,
			})
		}
		if r.settle > 0 {
			world.Faults = append(world.Faults, history.Fault{
				Webhook: name, Resources: r.resource, From: rec.repaired, Until: until + r.settle,
				Causes: []history.Cause{history.BreakerOpen}, MayStillAnswer: true,
			})
		}
	}
	if r.pause > 0 {
		world.Pauses = []history.Span{{From: w.paused, Until: w.paused + r.pause}}
	}
	if r.sheds != "" {
		world.Sheds = []history.Span{{Cluster: r.sheds, From: rec.broken - edge, Until: until}}
	}
	if r.losses {
		world.Losses = []history.Span{{From: rec.broken - edge, Until: until + r.settle}}
	}
	return world
}

// slowest is how long the slowest of the webhooks, or their callers, are waited for.
func (r *row) slowest() time.Duration {
	most := time.Duration(0)
	for _, h := range r.webhooks() {
		most = max(most, h.Timeout)
	}
	return min(most, cmp.Or(r.caller, most))
}

// configurations are those of the run.
func (r *row) configurations(w *world, rec *record) []history.Snapshot {
	if r.snapshots != nil {
		return r.snapshots(w, rec)
	}
	var all []history.Snapshot
	for _, d := range w.servers {
		for _, c := range d.configurations() {
			all = append(all, history.Snapshot{Hash: c.hash, Until: never, Webhooks: r.deciders()})
		}
	}
	return slices.CompactFunc(all, func(a, b history.Snapshot) bool { return a.Hash == b.Hash })
}
