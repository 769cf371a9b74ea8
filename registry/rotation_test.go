// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// rotating is a registry whose Targets answer as the test says.
type rotating struct {
	home
	*registry.Registry
	down   map[string]bool // by URL
	why    string          // that which is down does not answer
	probed atomic.Int64
	log    bytes.Buffer
}

func newRotating(t *testing.T) *rotating {
	r := &rotating{home: newHome(t), down: map[string]bool{}, why: "nobody is there"}
	r.Registry = registry.New(registry.Settings{
		Sources: manifest.Directories(r.dir),
		Logger:  slog.New(slog.NewTextHandler(&r.log, nil)),
		Resource: answering(func(target *transport.Target, _ *chain.DryRun) error {
			r.probed.Add(1)
			if r.down[target.URL()] {
				return absent{r.probed.Load(), r.why}
			}
			return nil
		}),
	})
	return r
}

// resource is a Target that is opened and answers as the test says.
type resource struct {
	registry.Unconnected
	open  func()
	ready func(*chain.DryRun) error
}

func (r resource) Open(context.Context) {
	if r.open != nil {
		r.open()
	}
}

// answering makes Resources that answer as ready says.
func answering(ready func(*transport.Target, *chain.DryRun) error) func(*transport.Target) chain.Resource {
	return func(t *transport.Target) chain.Resource {
		return resource{Unconnected: registry.Unconnected{Target: t}, ready: func(d *chain.DryRun) error { return ready(t, d) }}
	}
}

func (r resource) Ready(d *chain.DryRun) error { return r.ready(d) }

// absent is why a Target does not answer: another value at each probe.
type absent struct {
	Nth int64
	why string
}

func (a absent) Error() string { return a.why }

const hookYAML = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: hook.%[1]s.example.com
  clientConfig: {url: "https://hook.example.com/%[2]s"}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: %[3]d
`

const whenReady = `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: joins}
spec: {webhooks: ["one/*"], join: WhenReady}
`

// serve registers a webhook at a path.
func (r *rotating) serve(name, path string, timeout int) {
	r.put(name+".yaml", fmt.Sprintf(hookYAML, name, path, timeout))
}

// where returns the URL at which an entry is served.
func where(w *chain.Entry) string { return w.Hook.(hook.Located).Where() }

func at(path string) string { return "https://hook.example.com/" + path }

// serving lists what takes part, as path and timeout, and what is pending.
func (r *rotating) serving() []string {
	r.t.Helper()
	s := r.good(r.Registry)
	var list []string
	for _, w := range s.Clusters["dev"].Validating.Webhooks {
		if w.Configuration != "policy" && w.Pending == nil {
			list = append(list, fmt.Sprintf("%s %s", strings.TrimPrefix(where(w), at("")), w.Timeout))
		}
	}
	for _, p := range s.Pending {
		list = append(list, fmt.Sprintf("pending %s, previous serves: %v", p.Webhook, p.Previous))
	}
	return list
}

func (r *rotating) is(what string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.serving()); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// target returns the Target at a path that the current configuration has.
func (r *rotating) target(path string) *transport.Target {
	r.t.Helper()
	for _, target := range r.good(r.Registry).Targets {
		if target.URL() == at(path) {
			return target
		}
	}
	r.t.Fatalf("no Target at %s", path)
	return nil
}

// drainedAre compares the paths of the Targets that were closed, in that order, as
// the log says.
func (r *rotating) drainedAre(when string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, drained(&r.log, at(""))); diff != "" {
		r.t.Errorf("%s, drained (-want +got):\n%s", when, diff)
	}
}

// drained returns which Targets the log calls drained, without a prefix of their URLs.
func drained(log *bytes.Buffer, prefix string) (urls []string) {
	for line := range strings.Lines(log.String()) {
		if _, url, ok := strings.Cut(line, `"webhook target is drained, safe to stop" url=`); ok {
			urls = append(urls, strings.TrimPrefix(strings.TrimSpace(url), prefix))
		}
	}
	return urls
}

// Targets that are closed at once are closed in the order of their names.
func TestDrainedInOrder(t *testing.T) {
	r := newRotating(t)
	names := strings.Split("abcdefgh", "")
	for _, name := range names {
		r.serve(name, name, 5)
	}
	r.good(r.Registry)
	for _, name := range names {
		r.must(os.Remove(filepath.Join(r.dir, name+".yaml")))
	}
	r.good(r.Registry)
	r.good(r.Registry)
	r.drainedAre("all at once", names...)
}

// A new webhook takes part at once: its failure policy decides until it answers,
// as in kube-apiserver.
func TestE15NewWebhookTakesPart(t *testing.T) {
	r := newRotating(t)
	r.good(r.Registry)
	r.down[at("a")] = true
	r.serve("one", "a", 5)
	r.is("new and down", "a 5s")
	if !strings.Contains(r.log.String(), "webhook target does not answer") {
		t.Errorf("the log does not say it:\n%s", &r.log)
	}
	hash, served := r.Snapshot().Hash, r.Snapshot()
	delete(r.down, at("a"))
	r.is("answers", "a 5s")
	if r.Snapshot() != served || r.Snapshot().Hash != hash {
		t.Error("a probe that is answered makes another Snapshot of the same webhooks")
	}
}

// With join: WhenReady a new webhook joins when its Target answers, and not before;
// until then it is there, marked with the reason.
func TestE15NewWebhookIsPending(t *testing.T) {
	r := newRotating(t)
	r.put("binding.yaml", whenReady)
	r.good(r.Registry)
	r.down[at("a")] = true
	loaded := func() int { return strings.Count(r.log.String(), `msg="configuration loaded"`) }
	r.serve("one", "a", 5)
	r.is("new and down", "pending one/hook.one.example.com, previous serves: false")
	if n := loaded(); n != 2 {
		t.Errorf("%d lines of the log say that a configuration was loaded, want one for each", n)
	}
	for _, w := range r.Snapshot().Clusters["dev"].Validating.Webhooks {
		if w.Configuration == "one" && (w.Pending == nil || w.Pending.Error() != "nobody is there") {
			t.Errorf("it is marked with %v", w.Pending)
		}
	}
	hash := r.Snapshot().ShortHash()
	r.is("still down", "pending one/hook.one.example.com, previous serves: false")
	if r.Snapshot().ShortHash() != hash {
		t.Error("nothing changed but the Snapshot's name")
	}
	delete(r.down, at("a"))
	r.is("answers", "a 5s")
	if r.Snapshot().ShortHash() == hash {
		t.Error("two different Snapshots have one name")
	}
	if n := loaded(); n != 3 {
		t.Errorf("%d lines of the log say that a configuration was loaded, want one for each", n)
	}
	if !strings.Contains(r.log.String(), "webhook is pending") {
		t.Errorf("the log does not say it:\n%s", &r.log)
	}
}

// What is pending says why nobody answers now, and not why nobody answered when it
// came. That makes no other Snapshot: the reason is no part of what is served.
func TestE15PendingSaysTheLatestReason(t *testing.T) {
	r := newRotating(t)
	r.put("binding.yaml", whenReady)
	r.good(r.Registry)
	r.down[at("a")] = true
	r.serve("one", "a", 5)
	served := r.good(r.Registry)
	hash := served.Hash
	for _, why := range []string{"nobody is there", "the certificate is for another name", "it still loads policies"} {
		r.why = why
		if r.good(r.Registry) != served || served.Hash != hash {
			t.Fatalf("another Snapshot because %s", why)
		}
		if got := served.Pending[0].Err; got.Error() != why || !errors.Is(got, absent{r.probed.Load(), why}) {
			t.Errorf("the Snapshot says %q, want %q", got, why)
		}
		for _, w := range served.Clusters["dev"].Validating.Webhooks {
			if w.Configuration == "one" && w.Pending.Error() != why {
				t.Errorf("admissions say %q, want %q", w.Pending, why)
			}
		}
	}
}

// Nobody who looks waits for a load: not while it opens, asks, or waits until older
// Snapshots have gone.
func TestNobodyWaitsForALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		var r *registry.Registry
		looks := 0
		look := func() {
			looks++
			r.Acquire().Release()
			r.Targets()
			r.Draining()
			r.Problems()
			r.Loads()
		}
		r = registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: func(t *transport.Target) chain.Resource {
			return resource{registry.Unconnected{Target: t}, look, func(*chain.DryRun) error { look(); return nil }}
		}})
		h.must(os.Remove(filepath.Join(h.dir, "webhook.yaml")))
		h.good(r)
		oldest := r.Acquire()
		for i := range 2 {
			h.put("one.yaml", fmt.Sprintf(hookYAML, "one", "a", 5+i))
			h.good(r)
			defer r.Acquire().Release()
		}
		h.put("one.yaml", fmt.Sprintf(hookYAML, "one", "a", 9))
		loaded := make(chan struct{})
		go func() { defer close(loaded); r.Load() }()
		synctest.Wait() // for room
		look()
		select {
		case <-loaded:
			t.Error("it does not wait for room")
		default:
		}
		oldest.Release()
		<-loaded
		if looks != 3 {
			t.Errorf("looked %d times, want when it is opened, asked and has to wait", looks)
		}
	})
}

// nosy is a Target that looks whenever it is asked for anything.
type nosy struct {
	registry.Unconnected
	look func()
}

func (n nosy) Identity() string          { n.look(); return n.Unconnected.Identity() }
func (n nosy) Open(context.Context)      { n.look() }
func (n nosy) Ready(*chain.DryRun) error { n.look(); return nil }
func (n nosy) Busy() bool                { n.look(); return false }
func (n nosy) Close()                    { n.look() }
func (n nosy) String() string            { n.look(); return n.URL() }

// Nothing of a Resource is called under the lock that those take who look: one that
// blocks keeps nobody waiting but the load.
func TestNothingBlocksUnderTheLock(t *testing.T) {
	h := newHome(t)
	var r *registry.Registry
	look := func() { r.Targets(); r.Draining() }
	r = registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Changed: func(registry.Change) { look() }, Resource: func(t *transport.Target) chain.Resource {
		look()
		return nosy{registry.Unconnected{Target: t}, look}
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 3 {
			h.put("one.yaml", fmt.Sprintf(hookYAML, "one", fmt.Sprint(i), 5))
			h.put("two.yaml", fmt.Sprintf(hookYAML, "two", fmt.Sprint("two", i), 5))
			r.Load()
		}
		r.Load()
		if n := len(r.Targets()) + len(r.Draining()); n != 3 {
			t.Errorf("%d Targets are left, want 3", n)
		}
		r.Close()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("a Resource that looks waits for itself")
	}
}

// Resources are opened all at once: one that hangs delays no other, and a change by
// five seconds at most.
func TestOneThatHangsIsOpenedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		var opened atomic.Int64
		began := time.Now()
		contexts := make(chan context.Context, 101)
		r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: func(target *transport.Target) chain.Resource {
			return slow{registry.Unconnected{Target: target}, func(ctx context.Context) {
				contexts <- ctx
				if target.URL() == at("path0") {
					<-ctx.Done()
					return
				}
				if time.Since(began) == 0 {
					opened.Add(1)
				}
			}}
		}})
		h.must(os.Remove(filepath.Join(h.dir, "webhook.yaml")))
		for i := range 100 {
			h.put(fmt.Sprintf("%d.yaml", i), fmt.Sprintf(hookYAML, fmt.Sprintf("hook%d", i), fmt.Sprintf("path%d", i), 5))
		}
		h.good(r)
		if took := time.Since(began); opened.Load() != 99 || took != 5*time.Second {
			t.Errorf("%d of 99 are opened at once; the load takes %v", opened.Load(), took)
		}
		h.put("0.yaml", fmt.Sprintf(hookYAML, "hook0", "path100", 5)) // hangs no longer
		h.good(r)
		for range 101 {
			if ctx := <-contexts; ctx.Err() == nil {
				t.Fatal("what was opened may go on opening")
			}
		}
	})
}

// A process that stops asks no further Target: each may take its time to answer. What
// nobody has asked is not ready, and says so.
func TestNobodyIsAskedAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		ctx, stop := context.WithCancel(t.Context())
		var asked atomic.Int64
		r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: answering(func(*transport.Target, *chain.DryRun) error {
			stop()
			asked.Add(1)
			<-time.After(time.Second) // of the bubble's clock
			return errors.New("nobody is there")
		})})
		h.good(r)
		h.put("binding.yaml", strings.Replace(whenReady, "one/*", "*/*", 1))
		for i := range 100 {
			h.put(fmt.Sprintf("%d.yaml", i), fmt.Sprintf(hookYAML, fmt.Sprintf("hook%d", i), fmt.Sprintf("path%d", i), 5))
		}
		began := time.Now()
		r.Run(ctx)
		if took := time.Since(began); asked.Load() > 32 || took > 4*time.Second {
			t.Errorf("%d were asked, in %v", asked.Load(), took)
		}
		unasked := 0
		for _, p := range r.Snapshot().Pending {
			if p.Err.Error() == "was not asked yet" {
				unasked++
			}
		}
		if pending := len(r.Snapshot().Pending); pending != 100 || int64(unasked) != 100-asked.Load() {
			t.Errorf("%d are pending, %d of them unasked", pending, unasked)
		}
	})
}

// slow is a Target that takes its time to open.
type slow struct {
	registry.Unconnected
	open func(context.Context)
}

func (s slow) Open(ctx context.Context) { s.open(ctx) }

// A changed webhook keeps its previous version, all of it, until the new Target
// answers.
func TestE15ChangedWebhookKeepsItsPreviousVersion(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	r.is("cold start", "a 5s")
	r.down[at("b")] = true
	r.serve("one", "b", 7)
	r.is("changed and down", "a 5s", "pending one/hook.one.example.com, previous serves: true")
	r.good(r.Registry)
	r.drainedAre("while the previous version serves")
	r.serve("two", "c", 3)
	r.is("others go on", "a 5s", "c 3s", "pending one/hook.one.example.com, previous serves: true")
	delete(r.down, at("b"))
	r.is("answers", "b 7s", "c 3s")
	r.serve("one", "b", 9)
	r.is("the same Target, changed otherwise", "b 9s", "c 3s")
}

// A previous version is asked in the stage of the next one, in whose place it stands: a
// chain is in the order of stages.
func TestE15PreviousVersionChangesItsStage(t *testing.T) {
	for _, c := range []struct{ before, after string }{{"Validating", "Transactional"}, {"Transactional", "Validating"}} {
		r := newRotating(t)
		stage := func(stage string) {
			r.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\nspec: {webhooks: [\"one/*\"], stage: "+stage+"}\n")
		}
		stage(c.before)
		r.serve("one", "a", 5)
		r.serve("two", "c", 3)
		r.good(r.Registry)
		r.down[at("b")] = true
		stage(c.after)
		r.serve("one", "b", 7)
		list := r.good(r.Registry).Clusters["dev"].Validating.Webhooks
		if !slices.IsSortedFunc(list, chain.Compare) {
			t.Errorf("%s, then %s: the chain is not in order", c.before, c.after)
		}
		for _, w := range list {
			if w.Configuration == "one" && (w.Stage.String() != c.after || where(w) != at("a")) {
				t.Errorf("%s, then %s: it is %s in the stage %s", c.before, c.after, where(w), w.Stage)
			}
		}
	}
}

// A restart must never switch a policy off.
func TestE15ColdStartTakesEverything(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	r.down[at("a")] = true
	r.is("cold start", "a 5s")
	if n := r.probed.Load(); n > 0 {
		t.Errorf("%d probes", n)
	}
	r.serve("two", "b", 5)
	r.is("and it stays", "a 5s", "b 5s")
}

// probe: Skip overrides, for what is new and for what has changed.
func TestE15Skip(t *testing.T) {
	r := newRotating(t)
	r.good(r.Registry)
	r.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\nspec: {webhooks: [\"one/*\"], probe: Skip, join: WhenReady}\n")
	r.down[at("a")], r.down[at("b")] = true, true
	r.serve("one", "a", 5)
	r.is("new and down", "a 5s")
	r.serve("one", "b", 5)
	r.is("changed and down", "b 5s")
}

// A webhook that has never taken part has no previous version: when it changes
// while it is pending, it goes on being pending.
func TestE15PendingWebhookChanges(t *testing.T) {
	r := newRotating(t)
	r.put("binding.yaml", whenReady)
	r.good(r.Registry)
	r.down[at("a")], r.down[at("b")] = true, true
	r.serve("one", "a", 5)
	r.is("new and down", "pending one/hook.one.example.com, previous serves: false")
	r.serve("one", "b", 5)
	r.is("changed and down", "pending one/hook.one.example.com, previous serves: false")
	delete(r.down, at("b"))
	r.is("answers", "b 5s")
}

// While something is pending, every webhook stays on the path that the cluster calls
// for it.
func TestE15PendingKeepsPaths(t *testing.T) {
	const conflicting = "\n- name: %s.example.com\n  clientConfig: {url: \"https://hook.example.com/%s\"}\n" +
		"  rules: [{operations: [CREATE], apiGroups: [x], apiVersions: [%s], resources: [things]}]\n  sideEffects: None\n  admissionReviewVersions: [v1]"
	for _, tt := range []struct{ name, join, before, after string }{
		{"a version of before takes part", "Enforce", "b1", "b2"},
		{"a webhook joins", "WhenReady", "", "b2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRotating(t)
			r.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: joins}\nspec: {webhooks: [\"*/b.example.com\"], join: "+tt.join+"}\n")
			conflict := func(b string) {
				text := "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: conflict}\nwebhooks:" +
					fmt.Sprintf(conflicting, "a", "a", `"*"`) + fmt.Sprintf(conflicting, "c", "c", "v1")
				if b != "" {
					text += fmt.Sprintf(conflicting, "b", b, "v1")
				}
				r.put("conflict.yaml", text)
			}
			conflict(tt.before)
			r.good(r.Registry)
			r.down[at("b2")] = true
			conflict(tt.after)
			if r.good(r.Registry); len(r.Snapshot().Pending) != 1 {
				t.Fatalf("pending: %v", r.Snapshot().Pending)
			}
			chain := r.Snapshot().Clusters["dev"].Mutating
			want := map[string]string{"a.example.com": "only", "b.example.com": "not", "c.example.com": "not"}
			if len(chain.Paths) != 2 || len(chain.Webhooks) != len(want) {
				t.Fatalf("%d webhooks on %d paths", len(chain.Webhooks), len(chain.Paths))
			}
			for i, w := range chain.Webhooks {
				printed := chain.PathOf(i)
				if kind, _, _ := strings.Cut(printed.Segment, "."); kind != want[w.Name] {
					t.Errorf("%s is on %q", w.Name, printed.Segment)
				}
				for _, p := range chain.Paths {
					if called, current := chain.Path([]byte(p.Segment)); !current || called.Considers(i) != (p == printed) {
						t.Errorf("%s is considered on %q: %v, which is printed: %v", w.Name, p.Segment, called.Considers(i), current)
					}
				}
				if older, _ := chain.Path([]byte("only." + w.PathID)); !older.Considers(i) {
					t.Errorf("%s is not considered where an older registration calls for it", w.Name)
				}
			}
		})
	}
}

// What is taken back while it is pending is gone.
func TestE15PendingWebhookIsRemoved(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	r.good(r.Registry)
	r.down[at("b")] = true
	r.serve("one", "b", 5)
	r.is("changed and down", "a 5s", "pending one/hook.one.example.com, previous serves: true")
	r.serve("one", "a", 5)
	r.is("changed back", "a 5s")
	r.serve("one", "b", 5)
	r.good(r.Registry)
	r.must(os.Remove(filepath.Join(r.dir, "one.yaml")))
	r.is("removed")
	r.drainedAre("the pending one, and then it and the previous one at once", "b", "a", "b")
}

// A Target that has left is closed, and said to be safe to stop, when the last
// admission that may call it has ended.
func TestDrained(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	r.good(r.Registry)
	admission := r.Acquire()
	r.serve("one", "b", 5)
	r.is("rotated", "b 5s")
	r.drainedAre("under an admission")
	admission.Release()
	r.good(r.Registry)
	r.good(r.Registry)
	r.drainedAre("after the admission", "a")
}

// At most three Snapshots are alive: the next waits until the oldest has gone, and
// what is served stays until then.
func TestThreeSnapshotsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRotating(t)
		var held []*registry.Snapshot
		release := func() { held[0].Release(); held = held[1:] }
		defer func() {
			for len(held) > 0 {
				release()
			}
		}()
		load := func(timeout int) <-chan struct{} {
			r.serve("one", "a", timeout)
			loaded := make(chan struct{})
			go func() { defer close(loaded); r.Load() }()
			return loaded
		}
		isLoaded := func(loaded <-chan struct{}) bool {
			select {
			case <-loaded:
				return true
			case <-time.After(time.Minute): // of the bubble's clock
				return false
			}
		}
		for i := range 3 {
			if !isLoaded(load(5 + i)) {
				t.Fatalf("Snapshot %d waits", i+1)
			}
			held = append(held, r.Acquire())
		}
		fourth := load(9)
		if isLoaded(fourth) {
			t.Error("a fourth Snapshot is there")
		}
		if r.Snapshot() != held[2] {
			t.Error("the third is not served any more")
		}
		release()
		if !isLoaded(fourth) {
			t.Fatal("the oldest has gone, and the next does not come")
		}
		r.is("in the end", "a 9s")
	})
}

// A Target that comes back while an admission still uses a Snapshot of before is the
// same one: its breaker, latencies and connections go on, and nobody probes it again.
func TestTargetComesBack(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	first := r.target("a")
	admission := r.Acquire()
	r.serve("one", "b", 5)
	r.is("rotated", "b 5s")
	r.serve("one", "a", 5)
	if r.target("a") != first {
		t.Error("two Targets of one identity")
	}
	if n := r.probed.Load(); n != 1 {
		t.Errorf("%d probes; want that of the other Target alone", n)
	}
	admission.Release()
	r.good(r.Registry)
	r.drainedAre("back", "b")
	r.must(os.Remove(filepath.Join(r.dir, "one.yaml")))
	r.good(r.Registry)
	r.good(r.Registry)
	r.drainedAre("removed", "b", "a")
	r.serve("one", "a", 5)
	if r.target("a") == first {
		t.Error("a Target that is closed is used again")
	}
	if n := r.probed.Load(); n != 2 {
		t.Errorf("%d probes; want one of the new Target besides", n)
	}
}

// Nothing of what has left is kept: neither the Snapshot nor its Target.
func TestWhatHasLeftIsFreed(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	snapshot, target := weak.Make(r.good(r.Registry)), weak.Make(r.target("a"))
	r.serve("one", "b", 5)
	r.good(r.Registry)
	r.good(r.Registry)
	runtime.GC()
	if snapshot.Value() != nil || target.Value() != nil {
		t.Errorf("the Snapshot is kept: %t, the Target is kept: %t", snapshot.Value() != nil, target.Value() != nil)
	}
	runtime.KeepAlive(r)
}

// A Target is probed until it answers, once in each look, and not again.
func TestProbedUntilItAnswers(t *testing.T) {
	r := newRotating(t)
	r.good(r.Registry)
	probes := func(when string, want int64) {
		t.Helper()
		r.good(r.Registry)
		if got := r.probed.Swap(0); got != want {
			t.Errorf("%s: %d probes, want %d", when, got, want)
		}
	}
	r.serve("one", "a", 5)
	probes("new", 1)
	probes("it has answered", 0)
	r.serve("two", "a", 5)
	probes("another webhook at the same Target", 0)
	r.down[at("b")] = true
	r.serve("two", "b", 5)
	probes("new and down", 1)
	probes("still down", 1)
	delete(r.down, at("b"))
	probes("it answers", 1)
	probes("it has answered", 0)
	r.serve("two", "b", 6)
	probes("the webhook has changed", 0)
}

// A Target that leaves with several Snapshots at once is drained once.
func TestDrainedOnce(t *testing.T) {
	r := newRotating(t)
	var held []*registry.Snapshot
	for timeout := range 2 {
		r.serve("one", "a", 5+timeout)
		r.good(r.Registry)
		held = append(held, r.Acquire())
	}
	r.serve("one", "b", 5)
	r.good(r.Registry)
	for _, s := range held {
		s.Release()
	}
	r.good(r.Registry)
	r.drainedAre("both have gone", "a")
}

// What was served while a webhook was pending goes when its own admissions end, and
// does not wait for those of what follows.
func TestPendingSnapshotGoes(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	r.good(r.Registry)
	r.down[at("b")] = true
	r.serve("one", "b", 5)
	r.good(r.Registry)
	pending := r.Acquire()
	delete(r.down, at("b"))
	r.is("answers", "b 5s")
	defer r.Acquire().Release()
	r.drainedAre("under an admission")
	pending.Release()
	r.good(r.Registry)
	r.drainedAre("after it", "a")
}

// Probes are made a few at a time, however many Targets are new.
func TestProbesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		var now, most, all atomic.Int64
		r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: answering(func(*transport.Target, *chain.DryRun) error {
			for n := now.Add(1); most.Load() < n; {
				most.Store(n)
			}
			<-time.After(time.Second) // of the bubble's clock
			all.Add(1)
			now.Add(-1)
			return nil
		})})
		h.good(r)
		for i := range 100 {
			h.put(fmt.Sprintf("%d.yaml", i), fmt.Sprintf(hookYAML, fmt.Sprintf("hook%d", i), fmt.Sprintf("path%d", i), 5))
		}
		began := time.Now()
		h.good(r)
		if took := time.Since(began); all.Load() != 100 || most.Load() != 32 || took != 4*time.Second {
			t.Errorf("%d probes, %d at a time, in %v", all.Load(), most.Load(), took)
		}
	})
}

// A probe is told what to ask, where a binding wants a review.
func TestProbeQuestion(t *testing.T) {
	h := newHome(t)
	var mu sync.Mutex
	asked := map[string]string{}
	r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: answering(func(target *transport.Target, q *chain.DryRun) error {
		mu.Lock()
		defer mu.Unlock()
		asked[strings.TrimPrefix(target.URL(), at(""))] = "connect"
		if q != nil {
			asked[strings.TrimPrefix(target.URL(), at(""))] = fmt.Sprintf("%s %s as %s", q.Phase, q.Webhook.Name, q.Cluster)
		}
		return nil
	})})
	h.good(r)
	for name, manifest := range map[string]string{
		"one": hookYAML, "two": hookYAML, "three": strings.Replace(hookYAML, "ValidatingW", "MutatingW", 1),
	} {
		h.put(name+".yaml", fmt.Sprintf(manifest, name, name, 5))
	}
	h.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\nspec: {webhooks: [\"t*/*\"], probe: Review}\n")
	h.good(r)
	want := map[string]string{
		"one": "connect", "two": "validate hook.two.example.com as dev", "three": "mutate hook.three.example.com as dev",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One that was still pending when it left has proved nothing.
func TestE15PendingTargetComesBack(t *testing.T) {
	r := newRotating(t)
	r.put("binding.yaml", whenReady)
	r.good(r.Registry)
	r.down[at("a")] = true
	r.serve("one", "a", 5)
	r.is("new and down", "pending one/hook.one.example.com, previous serves: false")
	admission := r.Acquire()
	defer admission.Release()
	r.must(os.Remove(filepath.Join(r.dir, "one.yaml")))
	r.is("removed")
	r.serve("one", "a", 5)
	r.is("back and down", "pending one/hook.one.example.com, previous serves: false")
}

// A Snapshot's name says what is served: also which previous version of a webhook is.
func TestNameSaysWhichPreviousVersionServes(t *testing.T) {
	// name is that of the Snapshot in which a webhook that moves to a Target which is
	// down is still served as it was before.
	name := func(path string, timeout int, meanwhile ...string) string {
		r := newRotating(t)
		r.serve("one", path, timeout)
		r.good(r.Registry)
		r.down[at("new")] = true
		for _, other := range append(meanwhile, "two") {
			r.serve("one", "new", 5)
			r.serve("two", other, 5)
			r.is("changed and down", fmt.Sprintf("%s %ds", path, timeout), other+" 5s",
				"pending one/hook.one.example.com, previous serves: true")
		}
		return r.Snapshot().Hash
	}
	served := name("a", 5)
	for what, other := range map[string]string{
		"another Target":           name("b", 5),
		"the same Target, changed": name("a", 7),
	} {
		if other == served {
			t.Errorf("previous version with %s: same name", what)
		}
	}
	if again := name("a", 5); again != served {
		t.Error("two replicas that serve the same have two names for it")
	}
	if again := name("a", 5, "elsewhere"); again != served {
		t.Error("the name depends on what was served meanwhile")
	}
}

// It says which webhooks are pending, and what the sources say beside them, and
// nothing of why nobody answers.
func TestNameSaysWhatIsPending(t *testing.T) {
	name := func(timeout, looks int, up ...string) string {
		r := newRotating(t)
		r.put("binding.yaml", strings.Replace(whenReady, "one/*", "*/*", 1))
		r.good(r.Registry)
		for _, path := range []string{"a", "b", "c"} {
			r.down[at(path)] = !slices.Contains(up, path)
		}
		r.serve("one", "a", 5)
		r.serve("two", "b", timeout)
		r.serve("three", "c", 5)
		for range looks {
			r.good(r.Registry)
		}
		return r.Snapshot().Hash
	}
	known := map[string]string{}
	for what, hash := range map[string]string{
		"all": name(5, 1), "all but a": name(5, 1, "a"), "all but b": name(5, 1, "b"), "none": name(5, 1, "a", "b", "c"), "all, changed": name(6, 1),
	} {
		if other, same := known[hash]; same {
			t.Errorf("%q and %q have one name", what, other)
		}
		known[hash] = what
	}
	if name(5, 1, "a") != name(5, 3, "a") {
		t.Error("the name changes with every look")
	}
}

// The same previous version in one cluster is not that in another.
func TestNameSaysWhereThePreviousVersionServes(t *testing.T) {
	name := func(before string) string {
		r := newRotating(t)
		only := func(cluster string) {
			r.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\n"+
				"spec: {webhooks: [\"one/*\"], onlySelectedClusters: true, clusterSelector: {matchExpressions: [{key: name, operator: In, values: ["+cluster+"]}]}}\n")
		}
		r.put("clusters.yaml", strings.ReplaceAll(strings.ReplaceAll(manifests.ClusterNamed("east")+"---\n"+manifests.ClusterNamed("west"), "{name: east}", "{name: east, labels: {name: east}}"), "{name: west}", "{name: west, labels: {name: west}}"))
		only(before)
		r.serve("one", "a", 5)
		r.good(r.Registry)
		r.down[at("b")] = true
		only("east, west")
		r.serve("one", "b", 5)
		return r.good(r.Registry).Hash
	}
	if name("east") == name("west") {
		t.Error("one name")
	}
}

// Mutating webhooks keep their previous versions too, each that of its own
// Configuration, and clusters share what they can meanwhile.
func TestE15MutatingWebhookKeepsItsPreviousVersion(t *testing.T) {
	r := newRotating(t)
	serve := func(configuration, path string) {
		r.put(configuration+".yaml", strings.NewReplacer("ValidatingW", "MutatingW", "hook."+configuration, "hook.same").Replace(
			fmt.Sprintf(hookYAML, configuration, path, 5)))
	}
	r.put("clusters.yaml", manifests.ClusterNamed("east"))
	serve("one", "a")
	serve("two", "c")
	r.good(r.Registry)
	r.down[at("d")] = true
	serve("two", "d")
	s := r.good(r.Registry)
	for _, cluster := range []string{"dev", "east"} {
		var paths []string
		for _, w := range s.Clusters[cluster].Mutating.Webhooks {
			paths = append(paths, strings.TrimPrefix(where(w), at("")))
		}
		if want := []string{"a", "c"}; !slices.Equal(paths, want) {
			t.Errorf("%s is served by %q, want %q", cluster, paths, want)
		}
	}
	if s.Clusters["dev"].Mutating != s.Clusters["east"].Mutating {
		t.Error("clusters with equal webhooks have chains of their own")
	}
}

// Of two new webhooks that take part at once and do not answer, the other one goes on
// taking part when one answers: it is not its own previous version.
func TestE15NewWebhooksTakePart(t *testing.T) {
	r := newRotating(t)
	r.good(r.Registry)
	r.down[at("a")], r.down[at("b")] = true, true
	r.serve("one", "a", 5)
	r.serve("two", "b", 5)
	r.is("new and down", "a 5s", "b 5s")
	served := r.Snapshot()
	delete(r.down, at("a"))
	r.is("one answers", "a 5s", "b 5s")
	if r.Snapshot() != served {
		t.Error("another Snapshot of the same webhooks")
	}
	r.serve("two", "b", 7)
	r.is("the other changes where it is", "a 5s", "b 7s")
	r.down[at("c")] = true
	r.serve("two", "c", 8)
	r.is("and elsewhere", "a 5s", "b 7s", "pending two/hook.two.example.com, previous serves: true")
}

// Two webhooks that were at one Target keep their previous versions there, which is one
// Target of the Snapshot.
func TestPreviousVersionsShareATarget(t *testing.T) {
	r := newRotating(t)
	r.serve("one", "a", 5)
	r.serve("two", "a", 5)
	r.good(r.Registry)
	r.down[at("b")] = true
	r.serve("one", "b", 5)
	r.serve("two", "b", 5)
	r.is("changed and down", "a 5s", "a 5s", "pending one/hook.one.example.com, previous serves: true", "pending two/hook.two.example.com, previous serves: true")
	r.targetsAre("a", "b")
}

// Of the Targets of before a Snapshot has those that serve previous versions, once each,
// and no others.
func TestPreviousVersionsKeepTheirTargetsAlone(t *testing.T) {
	r := newRotating(t)
	for name, path := range map[string]string{"one": "a", "two": "a", "three": "b", "four": "c"} {
		r.serve(name, path, 5)
	}
	r.good(r.Registry)
	r.down[at("d")] = true
	r.serve("one", "d", 5)   // waits; two stays where it was
	r.serve("three", "d", 5) // waits, and was there alone
	r.serve("four", "e", 5)  // is served elsewhere
	r.good(r.Registry)
	r.targetsAre("a", "b", "d", "e")
}

// targetsAre compares the paths of the Targets of what is served.
func (r *rotating) targetsAre(want ...string) {
	r.t.Helper()
	var paths []string
	for _, target := range r.Snapshot().Targets {
		if path, ok := strings.CutPrefix(target.URL(), at("")); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	if !slices.Equal(paths, want) {
		r.t.Errorf("Targets %q, want %q", paths, want)
	}
}

// Targets are listed by URL, whatever order the configuration has them in: those that
// are served and those that drain. Two of one URL always stand in the same order.
func TestTargetsAreSorted(t *testing.T) {
	busy := map[*transport.Target]bool{}
	h := newHome(t)
	r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: func(t *transport.Target) chain.Resource {
		busy[t] = true
		return working{registry.Unconnected{Target: t}, func() bool { return busy[t] }}
	}})
	const count = 20
	for i := range count {
		h.put(fmt.Sprintf("%d.yaml", i), fmt.Sprintf(hookYAML, fmt.Sprintf("hook%d", i), fmt.Sprintf("path%02d", (7*i)%count), 5))
	}
	// Another Target at one of the URLs.
	h.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\n"+
		"spec: {webhooks: [\"twin/*\"], endpoints: [{address: \"192.0.2.1:443\"}]}\n")
	h.put("twin.yaml", fmt.Sprintf(hookYAML, "twin", "path07", 5))
	h.must(os.Remove(filepath.Join(h.dir, "webhook.yaml")))
	check := func(what string, list []*transport.Target) (twins []*transport.Target) {
		t.Helper()
		if !slices.IsSortedFunc(list, func(a, b *transport.Target) int { return strings.Compare(a.URL(), b.URL()) }) || len(list) != count+1 {
			t.Errorf("%s: %v", what, list)
		}
		for _, target := range list {
			if target.URL() == at("path07") {
				twins = append(twins, target)
			}
		}
		return twins
	}
	h.good(r)
	served := check("served", r.Targets())
	for i := range count {
		h.must(os.Remove(filepath.Join(h.dir, fmt.Sprintf("%d.yaml", i))))
	}
	h.must(os.Remove(filepath.Join(h.dir, "twin.yaml")))
	for range 3 {
		h.good(r)
	}
	if draining := check("draining", r.Draining()); !slices.Equal(draining, served) {
		t.Errorf("those of one URL are %p, then %p", served, draining)
	}
	for range 20 {
		if again := check("draining", r.Draining()); !slices.Equal(again, served) {
			t.Fatalf("those of one URL are %p, then %p", served, again)
		}
	}
	clear(busy)
	h.good(r)
	if left := r.Draining(); len(left) > 0 {
		t.Errorf("still draining: %v", left)
	}
}

// working is a Target with calls under way as the test says.
type working struct {
	registry.Unconnected
	busy func() bool
}

func (w working) Busy() bool { return w.busy() }

// What is closed is closed once, and is in no list any more.
func TestClosedOnce(t *testing.T) {
	var closed atomic.Int64
	h := newHome(t)
	r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: func(t *transport.Target) chain.Resource {
		return ending{registry.Unconnected{Target: t}, func() { closed.Add(1) }}
	}})
	h.good(r)
	for range 2 {
		r.Close()
		if n := closed.Load(); n != 1 || len(r.Targets())+len(r.Draining()) > 0 {
			t.Errorf("closed %d times; listed: %v and %v", n, r.Targets(), r.Draining())
		}
	}
}

// ending is a Target that tells when it is closed.
type ending struct {
	registry.Unconnected
	close func()
}

func (e ending) Close() { e.close() }
