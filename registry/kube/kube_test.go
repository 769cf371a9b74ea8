// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func TestMain(m *testing.M) {
	if n := os.Getenv(namespacesVariable); n != "" {
		serveAlone(n)
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of these tests. Nothing is expected to come near it.
const patience = 30 * time.Second

// world runs Sources.
type world struct {
	*kube.Sources
	t testing.TB

	open []chain.NamespaceSource

	mu  sync.Mutex
	log strings.Builder
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t}
	w.Sources = kube.New(kube.Config{
		Interval: 5 * time.Millisecond,
		Logger:   slog.New(slog.NewTextHandler(w, nil)),
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { w.want(); stop(); running.Wait() })
	return w
}

// Write collects the log.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(line)
}

func (w *world) logged(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.log.String(), text)
}

// want makes these the sources that are open. It waits for no list.
func (w *world) want(sources ...chain.NamespaceSource) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	w.wantBy(done, sources...)
}

// wantBy is want, but waits for the lists until ctx is done. What is new is opened
// before what is not wanted any more is closed, as in the registry.
func (w *world) wantBy(ctx context.Context, sources ...chain.NamespaceSource) {
	for _, s := range sources {
		if !slices.Contains(w.open, s) {
			s.Open(ctx)
		}
	}
	for _, s := range w.open {
		if !slices.Contains(sources, s) {
			s.Close()
		}
	}
	w.open = sources
}

// prepare makes a source for the access the one in use, and waits for its list.
func (w *world) prepare(cluster string, access manifest.KubeAccess) *kube.Source {
	w.t.Helper()
	return w.prepareWith(cluster, access, "tier")
}

// prepareWith is prepare for these labels.
func (w *world) prepareWith(cluster string, access manifest.KubeAccess, labels ...string) *kube.Source {
	w.t.Helper()
	s := w.Namespaces(cluster, access, labels).(*kube.Source)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.wantBy(ctx, s)
	if ctx.Err() != nil {
		w.t.Fatal("never prepared")
	}
	return s
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func expectTier(t *testing.T, s match.Namespaces, name, tier string) {
	t.Helper()
	labels, err := s.(match.NamespaceLookup).LookUpNamespace(name, time.Time{})
	if err != nil || labels["tier"] != tier {
		t.Errorf("namespace %s has %v, %v; want tier %q", name, labels, err, tier)
	}
}

func expectError(t *testing.T, s match.Namespaces, name, want string) {
	t.Helper()
	labels, err := s.(match.NamespaceLookup).LookUpNamespace(name, time.Time{})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("namespace %s has %v, %v; want an error with %q", name, labels, err, want)
	}
}

func gold() map[string]string { return map[string]string{"tier": "gold"} }

func TestLabelsFollowTheCluster(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	s := newWorld(t).prepare("east", a.access())
	expectTier(t, s, "shop", "gold")

	a.put("shop", map[string]string{"tier": "iron"})
	eventually(t, "the new label", func() bool {
		labels, _ := s.LookUpNamespace("shop", time.Time{})
		return labels["tier"] == "iron"
	})
	a.remove("shop")
	eventually(t, "the end of the namespace", func() bool {
		_, err := s.LookUpNamespace("shop", time.Time{})
		return errors.Is(err, match.ErrNoNamespace)
	})
}

func TestWatchedNamespacesAreNotAskedFor(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	s := newWorld(t).prepare("east", a.access())
	a.now("get", hangs)
	for range 10 {
		expectTier(t, s, "shop", "gold")
	}
	if n := a.times("get"); n != 0 {
		t.Errorf("%d live GETs", n)
	}
}

// TestWhatIsKept is the labels that somebody looks at, from the watch and from a
// live GET.
func TestWhatIsKept(t *testing.T) {
	a := newAPI(t)
	a.put("shop", map[string]string{"tier": "gold", "team": "a", "a/b": "c", "odd": `\"é`})
	w := newWorld(t)
	asked := w.Namespaces("west", a.access(), []string{"odd", "tier"}).(*kube.Source)
	for _, s := range []*kube.Source{asked, w.prepareWith("east", a.access(), "odd", "tier")} {
		labels, err := s.LookUpNamespace("shop", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"tier": "gold", "odd": `\"é`}, labels); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestNewNamespace is a namespace and its first object in one breath: the watch
// has not brought it yet.
func TestNewNamespace(t *testing.T) {
	a := newAPI(t)
	s := newWorld(t).prepare("east", a.access())
	a.mu.Lock()
	a.watches = map[chan metav1.WatchEvent]bool{} // the event is on its way for ever
	a.mu.Unlock()
	a.put("new", gold())
	for range 10 {
		expectTier(t, s, "new", "gold")
	}
	if n := a.times("get"); n != 1 {
		t.Errorf("%d live GETs for one namespace at once", n)
	}
	if _, err := s.LookUpNamespace("mars", time.Time{}); !errors.Is(err, match.ErrNoNamespace) {
		t.Errorf("a namespace that does not exist: %v", err)
	}
}

func TestAskedAlsoBeforeAndAfterItRuns(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	w := newWorld(t)
	s := w.Namespaces("east", a.access(), []string{"tier"})
	expectTier(t, s, "shop", "gold")
	if n := a.times("list"); n != 0 {
		t.Errorf("%d lists by a source that does not run", n)
	}
	running := w.prepare("west", a.access())
	w.want()
	eventually(t, "the end of the watch", func() bool { return a.watched() == 0 })
	expectTier(t, running, "shop", "gold")
}

func TestFailuresOfTheAPI(t *testing.T) {
	for _, tt := range []struct {
		name string
		does http.HandlerFunc
		want string
	}{
		{"401", fails(401, metav1.StatusReasonUnauthorized), "does not let the dispatcher read namespaces"},
		{"403", fails(403, metav1.StatusReasonForbidden), "does not let the dispatcher read namespaces"},
		{"500", fails(500, metav1.StatusReasonInternalError), "could not be asked"},
		{"nonsense", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "nonsense") }, "could not be asked"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "could not be asked"},
		{"headers without an end", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Padding", strings.Repeat("x", 128<<10))
			answer(w, 200, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		}, "could not be asked"},
		{"hangs", hangs, "did not answer in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			a.put("shop", gold())
			for _, verb := range []string{"list", "watch", "get"} {
				a.now(verb, tt.does)
			}
			if tt.name == "hangs" {
				a.now("list", fails(500, metav1.StatusReasonInternalError)) // its bound is longer than a test
			}
			w := newWorld(t)
			s := w.prepare("east", a.access())
			expectError(t, s, "shop", tt.want)
			eventually(t, "a log line", func() bool { return w.logged("stale") })
			status := w.Status()
			if len(status) != 1 || !status[0].Stale || status[0].Synced || status[0].LastError == "" {
				t.Errorf("status %+v", status)
			}
			for _, verb := range []string{"list", "watch", "get"} {
				a.now(verb, nil)
			}
			eventually(t, "recovery", func() bool { return w.logged("watched again") })
			expectTier(t, s, "shop", "gold")
		})
	}
}

// TestWatchExpires is a 410: everything is listed again.
func TestWatchExpires(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	s := newWorld(t).prepare("east", a.access())
	a.mu.Lock()
	a.namespaces["shop"].Labels = map[string]string{"tier": "iron"} // missed
	a.mu.Unlock()
	a.expire()
	eventually(t, "another list and watch", func() bool { return a.times("list") == 2 && a.watched() == 1 })
	eventually(t, "the label that was missed", func() bool {
		labels, _ := s.LookUpNamespace("shop", time.Time{})
		return labels["tier"] == "iron"
	})
}

// TestWatchBreaks counts on the cache for a while.
func TestWatchBreaks(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	w := newWorld(t)
	s := w.prepare("east", a.access())
	for _, verb := range []string{"list", "watch", "get"} {
		a.now(verb, fails(503, metav1.StatusReasonServiceUnavailable))
	}
	a.breakWatches()
	eventually(t, "a watch that fails", func() bool { return w.Status()[0].LastError != "" })
	expectTier(t, s, "shop", "gold")
	if w.Status()[0].Stale {
		t.Error("stale at once")
	}
}

func TestRotation(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	w := newWorld(t)
	s := w.prepare("east", a.access())
	if again := w.prepare("east", a.access()); again != s {
		t.Error("the same access is another source")
	}
	if n := a.times("list"); n != 1 {
		t.Errorf("%d lists", n)
	}
	elsewhere := a.access()
	elsewhere.Server += "/"
	changed := w.prepare("east", elsewhere)
	if changed == s {
		t.Error("another server is the same source")
	}
	eventually(t, "one watch", func() bool { return a.watched() == 1 })
	expectTier(t, changed, "shop", "gold")
	if n := len(w.Status()); n != 1 {
		t.Errorf("%d sources run", n)
	}
}

// TestNewLabel is a selector that names a label of which nothing is kept: it is
// listed once, before anybody can ask, and never taken for absent. One label less
// is no list at all.
func TestNewLabel(t *testing.T) {
	a := newAPI(t)
	a.put("shop", map[string]string{"tier": "gold", "team": "a"})
	w := newWorld(t)
	w.prepare("east", a.access())
	both := w.Namespaces("east", a.access(), []string{"team", "tier"}).(*kube.Source)
	labels, err := both.LookUpNamespace("shop", time.Time{})
	if err != nil || labels["team"] != "a" {
		t.Errorf("before it runs: %v, %v", labels, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w.wantBy(ctx, both)
	a.now("get", hangs)
	if labels, err := both.LookUpNamespace("shop", time.Time{}); err != nil || labels["team"] != "a" || labels["tier"] != "gold" {
		t.Errorf("%v, %v", labels, err)
	}
	if n := a.times("list"); n != 2 {
		t.Errorf("%d lists for one label more", n)
	}
	if fewer := w.prepareWith("east", a.access(), "team"); fewer != both || a.times("list") != 2 {
		t.Errorf("one label less: another source: %t, %d lists", fewer != both, a.times("list"))
	}
	eventually(t, "one watch", func() bool { return a.watched() == 1 })
}

// TestAnotherObject is an answer that is no such namespace: it has no label, and
// that says nothing.
func TestAnotherObject(t *testing.T) {
	a := newAPI(t)
	s := newWorld(t).prepare("east", a.access())
	for _, object := range []any{map[string]any{}, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "other"}}} {
		a.now("get", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, object) })
		expectError(t, s, "shop", "could not be asked")
	}
}

// TestKnownWithoutAsking: what the watch has brought, or a live GET a moment ago, is
// known at once. Nothing is asked for the rest.
func TestKnownWithoutAsking(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	s := newWorld(t).prepare("east", a.access())
	a.now("watch", hangs)
	a.now("get", hangs)
	if labels, err := s.NamespaceLabels("shop"); err != nil || labels["tier"] != "gold" {
		t.Errorf("watched: %v, %v", labels, err)
	}
	for name, want := range map[string]error{"mars": match.ErrNotLookedUp, "No/name": match.ErrNoNamespace} {
		if _, err := s.NamespaceLabels(name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := a.times("get"); n != 0 {
		t.Errorf("%d live GETs", n)
	}
	a = newAPI(t)
	a.put("shop", gold())
	unwatched := newWorld(t).Namespaces("west", a.access(), []string{"tier"}).(*kube.Source)
	expectTier(t, unwatched, "shop", "gold")
	if labels, err := unwatched.NamespaceLabels("shop"); err != nil || labels["tier"] != "gold" || a.times("get") != 1 {
		t.Errorf("asked before: %v, %v, %d live GETs", labels, err, a.times("get"))
	}
}
