// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

const clusterYAML, webhookYAML = manifests.Cluster, manifests.Webhook

// home is a source directory of a test.
type home struct {
	t   *testing.T
	dir string
}

func newHome(t *testing.T) home {
	h := home{t, filepath.Join(t.TempDir(), "source")}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.put("cluster.yaml", clusterYAML)
	h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "first.policy"))
	return h
}

func (h home) put(name, content string) {
	h.t.Helper()
	manifests.Put(h.t, h.dir, name, content)
}

func (h home) must(err error) {
	h.t.Helper()
	manifests.Must(h.t, err)
}

func (h home) registry() *registry.Registry {
	return registry.New(registry.Settings{Sources: manifest.Directories(h.dir)})
}

// loaded returns a registry that serves the home's first state.
func (h home) loaded() *registry.Registry {
	h.t.Helper()
	r := h.registry()
	h.good(r)
	return r
}

func (h home) good(r *registry.Registry) *registry.Snapshot {
	h.t.Helper()
	if problems := r.Load(); len(problems) > 0 {
		h.t.Fatal(problems)
	}
	return r.Snapshot()
}

// refused loads and wants a problem with reason, and the Snapshot kept.
func (h home) refused(r *registry.Registry, reason string) {
	h.t.Helper()
	before := r.Snapshot()
	problems := r.Load()
	if len(problems) == 0 || !strings.Contains(fmt.Sprint(problems), reason) {
		h.t.Fatalf("problems %v, want %q", problems, reason)
	}
	if r.Snapshot() != before {
		h.t.Fatal("the last good Snapshot did not stay")
	}
	if len(r.Problems()) != len(problems) {
		h.t.Fatalf("Problems() = %v", r.Problems())
	}
}

// shelf is a Source that has what a test puts there.
type shelf []manifest.File

func (*shelf) Name() string { return "shelf" }

func (s *shelf) Read(context.Context) []manifest.File { return slices.Clone(*s) }

// first returns the name of the first validating webhook.
func first(s *registry.Snapshot) string { return s.Clusters["dev"].Validating.Webhooks[0].Name }

func TestLoad(t *testing.T) {
	t.Run("E12 empty directory", func(t *testing.T) {
		h := newHome(t)
		r := h.loaded()
		h.must(os.Remove(filepath.Join(h.dir, "cluster.yaml")))
		h.must(os.Remove(filepath.Join(h.dir, "webhook.yaml")))
		h.refused(r, "holds no object")
	})
	t.Run("E12 one of two directories is empty", func(t *testing.T) {
		h, other := newHome(t), t.TempDir()
		path := filepath.Join(other, "more.yaml")
		h.must(os.WriteFile(path, []byte(strings.NewReplacer("name: dev", "name: prod",
			"anonymous: true", "certificate: {commonNames: [prod]}").Replace(clusterYAML)), 0o600))
		r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir, other)})
		h.good(r)
		h.must(os.Remove(path))
		h.refused(r, "holds no object")
	})
	t.Run("E12 one source never had an object", func(t *testing.T) {
		h := newHome(t)
		r := registry.New(registry.Settings{Sources: append(manifest.Directories(h.dir), &shelf{})})
		h.good(r)
		h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "second.policy"))
		if got := first(h.good(r)); got != "second.policy.example.com" {
			t.Errorf("%s is served", got)
		}
	})
	t.Run("E12 one source has no object any more", func(t *testing.T) {
		h := newHome(t)
		more := &shelf{manifest.File{Name: "prod.yaml", Data: []byte(manifests.ClusterNamed("prod"))}}
		r := registry.New(registry.Settings{Sources: append(manifest.Directories(h.dir), more)})
		if s := h.good(r); s.Clusters["prod"] == nil || s.Clusters["dev"] == nil {
			t.Fatalf("clusters are %v", s.Clusters)
		}
		(*more)[0].Data = nil
		h.refused(r, "shelf: holds no object")
		*more = nil
		h.refused(r, "shelf: holds no object")
		*more = shelf{{Name: "prod.yaml", Err: errors.New("nobody answers")}}
		h.refused(r, "prod.yaml: cannot be read: nobody answers")
	})
	t.Run("E12 empty directory with allowEmpty", func(t *testing.T) {
		h := newHome(t)
		r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), AllowEmpty: true})
		h.good(r)
		h.must(os.Remove(filepath.Join(h.dir, "cluster.yaml")))
		h.must(os.Remove(filepath.Join(h.dir, "webhook.yaml")))
		if s := h.good(r); len(s.Clusters) != 0 {
			t.Fatal(s.Clusters)
		}
	})
	t.Run("E12 empty from the start", func(t *testing.T) {
		r := registry.New(registry.Settings{Sources: manifest.Directories(t.TempDir())})
		if problems := r.Load(); len(problems) != 1 || r.Snapshot() != nil {
			t.Fatal(problems, r.Snapshot())
		}
	})
	t.Run("E13 half-written file", func(t *testing.T) {
		h := newHome(t)
		r := h.loaded()
		whole := fmt.Sprintf(webhookYAML, "second.policy")
		h.put("webhook.yaml", whole[:len(whole)/2])
		h.refused(r, "webhook.yaml")
		h.put("webhook.yaml", whole)
		if got := first(h.good(r)); got != "second.policy.example.com" {
			t.Fatal(got)
		}
	})
	t.Run("E13 file that is whole as far as it is written", func(t *testing.T) { synctest.Test(t, whileWritten) })
	t.Run("E13 directory that does not come to rest", func(t *testing.T) { synctest.Test(t, restless) })
	t.Run("E13 unreadable file", func(t *testing.T) {
		h := newHome(t)
		r := h.loaded()
		h.must(os.Symlink("missing", filepath.Join(h.dir, "dangling.yaml")))
		h.must(syscall.Mkfifo(filepath.Join(h.dir, "pipe.yaml"), 0o600))
		h.refused(r, "no such file")
		h.refused(r, "not a regular file")
	})
	t.Run("hidden files, other files and directories are not read", func(t *testing.T) {
		h := newHome(t)
		r := h.loaded()
		before := r.Snapshot()
		for _, name := range []string{".hidden.yaml", "webhook.yaml~", "README.md", "directory.yaml/more.yaml"} {
			h.put(name, "junk")
		}
		if h.good(r) != before {
			t.Error("another Snapshot")
		}
	})
	t.Run("E13 directory gone", func(t *testing.T) {
		h := newHome(t)
		r := h.loaded()
		h.must(os.Rename(h.dir, h.dir+".away"))
		h.refused(r, "no such file or directory")
		h.must(os.Rename(h.dir+".away", h.dir))
		h.good(r)
	})
	t.Run("back to what is served", func(t *testing.T) {
		h := newHome(t)
		r := h.loaded()
		before := r.Snapshot()
		h.put("cluster.yaml", "junk")
		h.refused(r, "must be an object")
		h.put("cluster.yaml", clusterYAML)
		if h.good(r) != before {
			t.Fatal("a Snapshot of the same content was swapped in")
		}
	})
	t.Run("E13 symlink swap of a mounted ConfigMap", configMapSwap)
}

// running runs a registry of the home's first state until the test ends, and returns
// what it is seen to serve: the first webhook's name, for each Snapshot.
func (h home) running() (r *registry.Registry, served func() []string) {
	h.t.Helper()
	var names []string
	var mu sync.Mutex
	r = registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Changed: func(c registry.Change) {
		mu.Lock()
		defer mu.Unlock()
		if c.Snapshot != nil {
			names = append(names, first(c.Snapshot))
		}
	}})
	h.good(r)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	h.t.Cleanup(func() { cancel(); <-done })
	return r, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(names)
	}
}

// whileWritten writes a file in three parts, each of which is a configuration by
// itself, and has it looked at in between.
func whileWritten(t *testing.T) {
	h := newHome(t)
	r, served := h.running()
	part := func(name string, after time.Duration) {
		h.put("webhook.yaml", fmt.Sprintf(webhookYAML, name))
		<-time.After(after) // of the bubble's clock
	}
	part("third.policy", 2*time.Second+25*time.Millisecond)
	part("half.policy", 50*time.Millisecond)
	part("whole.policy", time.Second)
	if got, want := served(), []string{"first.policy.example.com", "whole.policy.example.com"}; !slices.Equal(got, want) {
		t.Errorf("served %q, want %q", got, want)
	}
	if problems := r.Problems(); len(problems) > 0 {
		t.Error(problems)
	}
}

// restless changes a file all the time, and then puts back what was there before.
func restless(t *testing.T) {
	h := newHome(t)
	r, served := h.running()
	for i := range 200 {
		h.put("webhook.yaml", fmt.Sprintf(webhookYAML, fmt.Sprintf("turn%d.policy", i)))
		<-time.After(20 * time.Millisecond) // of the bubble's clock
	}
	synctest.Wait()
	if got := fmt.Sprint(r.Problems()); !strings.Contains(got, "the sources change while they are read") {
		t.Errorf("problems: %s", got)
	}
	h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "first.policy"))
	<-time.After(3 * time.Second)
	for _, name := range served() {
		if name != "first.policy.example.com" {
			t.Errorf("served %q", name)
		}
	}
	if problems := r.Problems(); len(problems) > 0 {
		t.Errorf("at rest: %v", problems)
	}
}

// configMapSwap changes a directory as the kubelet does: the files are links
// through ..data, which is renamed from one version to the next.
func configMapSwap(t *testing.T) {
	h := home{t, t.TempDir()}
	for i, name := range []string{"first.policy", "second.policy"} {
		version := fmt.Sprintf("..version%d", i)
		h.put(filepath.Join(version, "cluster.yaml"), clusterYAML)
		h.put(filepath.Join(version, "webhook.yaml"), fmt.Sprintf(webhookYAML, name))
	}
	h.must(os.Symlink("..version0", filepath.Join(h.dir, "..data")))
	for _, name := range []string{"cluster.yaml", "webhook.yaml"} {
		h.must(os.Symlink(filepath.Join("..data", name), filepath.Join(h.dir, name)))
	}
	r := h.loaded()
	h.must(os.Symlink("..version1", filepath.Join(h.dir, "..data_tmp")))
	h.must(os.Rename(filepath.Join(h.dir, "..data_tmp"), filepath.Join(h.dir, "..data")))
	if got := first(h.good(r)); got != "second.policy.example.com" {
		t.Fatal(got)
	}
}

func TestProblemsAreLoggedOncePerChange(t *testing.T) {
	h := newHome(t)
	var log strings.Builder
	r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	h.good(r)
	h.put("cluster.yaml", "junk")
	for range 3 {
		h.refused(r, "must be an object")
	}
	if n := strings.Count(log.String(), "must be an object"); n != 1 {
		t.Fatalf("logged %d times:\n%s", n, log.String())
	}
}

// quitter is a Source that gives up when the process stops.
type quitter struct{ manifest.Directory }

func (q quitter) Read(ctx context.Context) []manifest.File {
	if err := ctx.Err(); err != nil {
		return []manifest.File{{Name: q.Name(), Err: err}}
	}
	return q.Directory.Read(ctx)
}

// A Source that gives up because the process stops is not refused: it says nothing new.
func TestNothingIsNewAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		var changes []registry.Change
		r := registry.New(registry.Settings{Sources: []manifest.Source{quitter{manifest.Directory(h.dir)}}, Changed: func(c registry.Change) { changes = append(changes, c) }})
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { defer close(stopped); r.Run(ctx) }()
		synctest.Wait()
		h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "second.policy"))
		<-time.After(2*time.Second + 25*time.Millisecond) // it has been read once, and comes to rest
		stop()
		<-stopped
		if len(changes) != 1 || changes[0].Snapshot == nil {
			t.Errorf("changes: %+v", changes)
		}
	})
}

func TestReferencedFileReloads(t *testing.T) {
	h := newHome(t)
	h.put("binding.yaml", `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: token}
spec: {webhooks: ["*/*"], bearerTokenFile: secret/token}
`)
	r := h.registry()
	h.refused(r, "cannot be read")
	h.put("secret/token", "one\n")
	before := h.good(r)
	h.put("secret/token", "two\n")
	after := h.good(r)
	if before.Hash == after.Hash || before.Targets[0] == after.Targets[0] {
		t.Fatal("the new token was not noticed")
	}
	if h.good(r) != after {
		t.Fatal("nothing changed, and a new Snapshot was made")
	}
}

func TestTargetsSurviveReload(t *testing.T) {
	h := newHome(t)
	r := h.loaded()
	before := r.Targets()
	h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "renamed.policy"))
	after := h.good(r).Targets
	if len(before) != 1 || len(after) != 1 || before[0] != after[0] {
		t.Fatalf("Targets %v, then %v", before, after)
	}
	if got := after[0].URL(); got != "https://policy.policies.svc:443/judge" {
		t.Fatal(got)
	}
	h.put("webhook.yaml", strings.ReplaceAll(fmt.Sprintf(webhookYAML, "renamed.policy"), "/judge", "/other"))
	if moved := h.good(r).Targets; moved[0] == before[0] {
		t.Fatal("another path is another Target")
	}
}

// While a new Target is opened, those of the Snapshot that is served count too. One
// that is open is not opened again.
func TestOpenedTargetsAreListed(t *testing.T) {
	h := newHome(t)
	var r *registry.Registry
	var seen []int
	see := func() { seen = append(seen, len(r.Targets())) }
	r = registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Resource: func(t *transport.Target) chain.Resource {
		return resource{Unconnected: registry.Unconnected{Target: t}, open: see, ready: func(*chain.DryRun) error { return nil }}
	}})
	h.good(r)
	h.put("webhook.yaml", strings.ReplaceAll(fmt.Sprintf(webhookYAML, "first.policy"), "/judge", "/other"))
	h.good(r)
	h.put("webhook.yaml", strings.ReplaceAll(fmt.Sprintf(webhookYAML, "renamed.policy"), "/judge", "/other"))
	h.good(r)
	h.put("webhook.yaml", "junk")
	h.refused(r, "must be an object")
	if want := []int{1, 2}; !slices.Equal(seen, want) || len(r.Targets()) != 1 {
		t.Fatalf("saw %v Targets, want %v; now %d", seen, want, len(r.Targets()))
	}
}

// Validate takes single files as it takes directories, and does not take what holds
// nothing (E12).
func TestValidatePaths(t *testing.T) {
	h := newHome(t)
	file, empty := filepath.Join(h.dir, "cluster.yaml"), t.TempDir()
	for name, c := range map[string]struct {
		paths  []string
		reason string
	}{
		"a directory":              {[]string{h.dir}, ""},
		"a file":                   {[]string{file}, ""},
		"E12 an empty directory":   {[]string{empty}, "holds no object"},
		"E12 beside one that does": {[]string{empty, h.dir}, ""},
		"a file that is not there": {[]string{file + "x"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			s, problems, _ := registry.Validate(registry.Settings{Sources: manifest.Directories(c.paths...)})
			if c.reason == "" && (len(problems) > 0 || s == nil || s.Clusters["dev"] == nil) {
				t.Errorf("problems %v", problems)
			}
			if c.reason != "" && (s != nil || !strings.Contains(fmt.Sprint(problems), c.reason)) {
				t.Errorf("problems %v, want %s", problems, c.reason)
			}
		})
	}
}

// source is a cluster's source of namespaces that tells what becomes of it.
type source struct {
	cluster string
	told    func(string)
}

func (source) NamespaceLabels(string) (labels map[string]string, err error) {
	return nil, nil
}

func (s source) Identity() string        { return s.cluster }
func (s source) String() string          { return s.cluster }
func (s source) Open(context.Context)    { s.told("open " + s.cluster) }
func (source) Ready(*chain.DryRun) error { return nil }
func (source) Busy() bool                { return false }
func (s source) Close()                  { s.told("close " + s.cluster) }

// A source of namespaces is opened before the first Snapshot that has it is served, and
// closed when the last one has gone.
func TestSourcesOfNamespaces(t *testing.T) {
	h := newHome(t)
	put := func(name string) {
		h.put(name+".yaml", fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %[1]s}\n"+
			"spec: {authentication: {certificate: {commonNames: [%[1]s]}}, kubeconfigFile: kubeconfig}\n", name))
	}
	h.put("kubeconfig", `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api.example.com"}}]
users: [{name: a, user: {token: abc}}]
`)
	var told []string
	expect := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("%s: %q, want %q", when, told, want)
		}
		told = nil
	}
	var r *registry.Registry
	tell := func(what string) {
		if s := r.Snapshot(); s != nil && what == "open west" && s.Clusters["west"] != nil {
			t.Error("it is served before it is opened")
		}
		told = append(told, what)
	}
	r = registry.New(registry.Settings{
		Sources: manifest.Directories(h.dir),
		Compile: compile.Options{Namespaces: func(cluster string, _ manifest.KubeAccess, _ []string) chain.NamespaceSource {
			return source{cluster, tell}
		}},
	})
	put("east")
	h.good(r)
	expect("first", "open east")
	admission := r.Acquire()
	put("west")
	h.must(os.Remove(filepath.Join(h.dir, "east.yaml")))
	h.good(r)
	expect("replaced under an admission", "open west")
	admission.Release()
	h.good(r)
	expect("after the admission", "close east")
	r.Close()
	expect("at the end", "close west")
}

// A source of namespaces has the labels that the webhooks of before look at, too: they
// serve while those of now are pending.
func TestLabelsOfBefore(t *testing.T) {
	h := newHome(t)
	h.put("cluster.yaml", strings.Replace(clusterYAML, "anonymous: true}", "anonymous: true}, kubeconfigFile: kubeconfig", 1))
	h.put("kubeconfig", `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api.example.com"}}]
users: [{name: a, user: {token: abc}}]
`)
	var labels []string
	r := registry.New(registry.Settings{Sources: manifest.Directories(h.dir), Compile: compile.Options{
		Namespaces: func(cluster string, _ manifest.KubeAccess, needed []string) chain.NamespaceSource {
			labels = needed
			return source{cluster, func(string) {}}
		},
	}})
	for _, look := range []struct {
		key  string
		want []string
	}{{"tier", []string{"tier"}}, {"team", []string{"team", "tier"}}, {"last", []string{"last", "team"}}} {
		h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "first.policy")+
			"  rules: [{operations: [CREATE], apiGroups: [\"\"], apiVersions: [v1], resources: [pods]}]\n"+
			"  namespaceSelector: {matchLabels: {"+look.key+": a}}\n")
		h.good(r)
		if !slices.Equal(labels, look.want) {
			t.Errorf("%s: labels %q, want %q", look.key, labels, look.want)
		}
	}
}

func TestLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		r := h.registry()
		if got := r.Loads(); got != (registry.Loads{}) {
			t.Errorf("before the first: %+v", got)
		}
		h.good(r)
		want := registry.Loads{Good: 1, Last: time.Now()} // of the bubble's clock
		<-time.After(time.Minute)
		h.good(r)
		h.put("cluster.yaml", "junk")
		h.refused(r, "must be an object")
		h.refused(r, "must be an object")
		want.Bad = 1
		if got := r.Loads(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestHashIsOfTheContent(t *testing.T) {
	a, b := newHome(t), newHome(t)
	hash := a.loaded().Snapshot().Hash
	if other := b.loaded().Snapshot().Hash; other != hash {
		t.Fatalf("same input, hashes %s and %s", hash, other)
	}
	b.put("cluster.yaml", clusterYAML+"#")
	if other := b.loaded().Snapshot().Hash; other == hash {
		t.Fatal("other input, same hash")
	}
	if short := a.loaded().Snapshot().ShortHash(); len(short) != 12 || !strings.HasPrefix(hash, short) {
		t.Fatal(short)
	}
}

// Run loads at once where nothing is served yet, and otherwise when the interval is over.
func TestRunLoadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		for name, r := range map[string]*registry.Registry{"new": h.registry(), "loaded": h.loaded()} {
			ctx, cancel := context.WithCancel(context.Background())
			before := r.Snapshot()
			h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "now.policy"))
			done := make(chan struct{})
			go func() { defer close(done); r.Run(ctx) }()
			synctest.Wait()
			if s := r.Snapshot(); s != before && before != nil || s == nil {
				t.Errorf("%s: %v is served at once, after %v", name, s, before)
			}
			cancel()
			<-done
			h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "first.policy"))
		}
	})
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		r := h.loaded()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()

		h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "polled.policy"))
		<-time.After(3 * time.Second) // of the bubble's clock
		synctest.Wait()
		if got := first(r.Snapshot()); got != "polled.policy.example.com" {
			t.Error("after an interval:", got)
		}

		h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "signalled.policy"))
		r.Reload()
		r.Reload()
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		if got := first(r.Snapshot()); got != "signalled.policy.example.com" {
			t.Error("after Reload:", got)
		}
		cancel()
		<-done
	})
}
