// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/mirror"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait. Nothing is expected to come near it.
const patience = 30 * time.Second

// rig is a mirror of an api.
type rig struct {
	t         *testing.T
	api       *api
	directory string
	settings  func(*mirror.Settings)
	stop      func()
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, api: newAPI(t), directory: t.TempDir(), settings: func(*mirror.Settings) {}}
	t.Cleanup(func() {
		if r.stop != nil {
			r.stop()
		}
	})
	return r
}

// start starts the mirror, or restarts it.
func (r *rig) start() {
	r.t.Helper()
	if r.stop != nil {
		r.stop()
	}
	config := &rest.Config{Host: r.api.server.URL, QPS: -1}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		r.t.Fatal(err)
	}
	s := mirror.Settings{Namespace: "registry", Directory: r.directory, Quiet: 10 * time.Millisecond, Late: 100 * time.Millisecond, Probation: time.Hour}
	if s.Client, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		r.t.Fatal(err)
	}
	r.settings(&s)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mirror.New(s).Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	r.stop = func() {
		cancel()
		running.Wait()
		client.CloseIdleConnections()
		r.stop = nil
	}
}

// until waits for a status.
func (r *rig) until(what string, is func(mirror.Status) bool) mirror.Status {
	r.t.Helper()
	var s mirror.Status
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		if s = *mirrorstatus.Read(r.directory); !strings.Contains(s.Error, "its status cannot be read") && is(s) {
			return s
		}
	}
	r.t.Fatalf("%s: not within %v: %+v", what, patience, s)
	return s
}

// serves waits until the clusters that the dispatcher's own source gives are these, and
// nothing is wrong with what it gives.
func (r *rig) serves(clusters ...string) {
	r.t.Helper()
	var got []string
	var problems []manifest.Problem
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		snapshot, found, _ := registry.Validate(registry.Settings{Sources: manifest.Directories(filepath.Join(r.directory, "current"))})
		got, problems = nil, found
		if snapshot != nil {
			for name := range snapshot.Clusters {
				got = append(got, name)
			}
			slices.Sort(got)
			if slices.Equal(got, clusters) {
				return
			}
		}
	}
	r.t.Fatalf("%v are served (%v), want %v", got, problems, clusters)
}

func (r *rig) current() string {
	link, err := os.Readlink(filepath.Join(r.directory, "current"))
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimPrefix(link, "gen-")
}

func refusedOf(s mirror.Status, object string) *mirror.Refused {
	for i := range s.Refused {
		if s.Refused[i].Object == object {
			return &s.Refused[i]
		}
	}
	return nil
}

func isRefused(object string) func(mirror.Status) bool {
	return func(s mirror.Status) bool { return refusedOf(s, object) != nil }
}

func cluster(name, identity string) string {
	return fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {authentication: {certificate: {commonNames: [%s]}}}", name, identity)
}

func webhook(name string) string {
	return fmt.Sprintf(`apiVersion: dispatcher.dev/v1alpha1
kind: WebhookConfiguration
metadata: {name: %s}
spec:
  phase: Validating
  webhooks:
  - {name: a.example.com, clientConfig: {service: {name: svc, namespace: ns}}, sideEffects: None, admissionReviewVersions: [v1]}`, name)
}

func registryConfirms(generation string) string {
	return "apiVersion: dispatcher.dev/v1alpha1\nkind: Registry\nmetadata: {name: registry, annotations: {dispatcher.dev/confirm-shrink: \"" + generation + "\"}}"
}

// One bad object among many: the others are served, and the one says why not. A change
// that is bad leaves its last accepted version in service.
func TestOneBadAmongMany(t *testing.T) {
	r := newRig(t)
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("c%02d", i))
		r.api.apply(cluster(names[i], names[i]))
	}
	r.api.apply("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bad}\nspec: {authentication: {}}")
	r.start()
	r.serves(names...)
	bad := refusedOf(r.until("it is refused", isRefused("Cluster/bad")), "Cluster/bad")
	if bad.Kept || bad.Reason != mirror.ReasonInvalid || len(bad.Problems) == 0 || bad.Problems[0].Field != "spec.authentication" {
		t.Errorf("%+v", bad)
	}
	r.api.apply("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c07}\nspec: {authentication: {}}")
	r.api.apply(cluster("new", "new"))
	r.serves(append(slices.Clone(names), "new")...)
	if kept := refusedOf(r.until("it is refused", isRefused("Cluster/c07")), "Cluster/c07"); !kept.Kept {
		t.Errorf("%+v", kept)
	}
	r.api.apply(cluster("c07", "c07"))
	r.api.apply(cluster("bad", "bad"))
	r.serves(append([]string{"bad"}, append(names, "new")...)...)
	r.until("nothing is refused", func(s mirror.Status) bool { return s.RefusedCount == 0 })
}

// A new or changed object that claims what an accepted one has is at fault, whatever its
// name, and after a restart too.
func TestIncumbentWins(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("other", "other"))
	r.api.apply(cluster("prod", "prod"))
	r.start()
	r.serves("other", "prod")
	r.api.apply(cluster("aaa", "prod"))
	r.api.apply(cluster("zzz", "prod"))
	r.api.apply(cluster("other", "prod"))
	r.until("all three are refused", func(s mirror.Status) bool {
		return refusedOf(s, "Cluster/aaa") != nil && refusedOf(s, "Cluster/zzz") != nil && refusedOf(s, "Cluster/other") != nil
	})
	r.serves("other", "prod")
	r.stop()
	r.api.apply("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: aab, creationTimestamp: \"1999-01-01T00:00:00Z\"}\nspec: {authentication: {certificate: {commonNames: [prod]}}}")
	r.start()
	s := r.until("the newest is refused", isRefused("Cluster/aab"))
	if refusedOf(s, "Cluster/prod") != nil {
		t.Errorf("the incumbent is refused: %+v", s.Refused)
	}
	r.serves("other", "prod")
	r.api.remove("Cluster/prod")
	r.serves("other") // which was there before the others that claim it
}

// Without anything accepted before, the oldest wins.
func TestOldestWins(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("prod", "prod"))
	r.api.apply(cluster("aaa", "prod"))
	r.start()
	r.serves("prod")
	r.until("the younger is refused", isRefused("Cluster/aaa"))
}

// harmless changes the generation and nothing that anybody counts.
const harmless = `apiVersion: v1
kind: ConfigMap
metadata: {name: vendor, labels: {dispatcher.dev/source: "true"}}
data: {webhooks.json: '{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "vendor"}}'}`

// What has lost much is held back until its name is confirmed.
func TestShrink(t *testing.T) {
	for _, row := range []struct {
		name   string
		lose   func(*api)
		lost   string
		remain []string
	}{
		{"a CustomResourceDefinition is deleted", func(a *api) { a.undefine("Cluster") }, "every Cluster (there were 4)", nil},
		{"more than half of the Clusters are", func(a *api) { a.remove("Cluster/a", "Cluster/b", "Cluster/c") }, "3 of 4 Clusters", []string{"d"}},
		{"the only webhook is", func(a *api) {
			a.remove("WebhookConfiguration/one", "WebhookConfiguration/two", "WebhookConfiguration/three")
		}, "every WebhookConfiguration (there were 3)", []string{"a", "b", "c", "d"}},
		{"more than half of the webhooks are", func(a *api) { a.remove("WebhookConfiguration/one", "WebhookConfiguration/two") }, "2 of 3 that deny in cluster a", []string{"a", "b", "c", "d"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			for _, name := range []string{"a", "b", "c", "d"} {
				r.api.apply(cluster(name, name))
			}
			for _, name := range []string{"one", "two", "three"} {
				r.api.apply(webhook(name))
			}
			r.start()
			r.serves("a", "b", "c", "d")
			before := r.current()
			row.lose(r.api)
			r.until("the loss is held back", func(s mirror.Status) bool { return s.Next != nil && slices.Contains(s.Next.Lost, row.lost) })
			if r.current() != before {
				t.Error("it was published")
			}
			// It stays held, and what is served stays, over a restart.
			r.start()
			r.until("what was accepted stays", func(s mirror.Status) bool { return s.Generation == before })
			if row.remain == nil {
				return
			}
			s := r.until("the loss is held back again", func(s mirror.Status) bool { return s.Next != nil && len(s.Next.Lost) > 0 })
			// Another name confirms nothing: with a further change it is still held back.
			r.api.apply(registryConfirms(strings.Repeat("0", 64)))
			r.api.apply(harmless)
			old := s.Next.Generation
			s = r.until("the further change is held back, too", func(s mirror.Status) bool {
				return s.Next != nil && len(s.Next.Lost) > 0 && s.Next.Generation != old
			})
			if r.current() != before {
				t.Error("it was published")
			}
			r.api.apply(registryConfirms(s.Next.Generation))
			r.serves(row.remain...)
			r.until("nothing waits", func(s mirror.Status) bool { return s.Next == nil })
		})
	}
}

// What is deleted object by object is held back like what is deleted at once. What is
// confirmed is what later losses are compared with.
func TestShrinkSlowly(t *testing.T) {
	r := newRig(t)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, name := range names {
		r.api.apply(cluster(name, name))
	}
	r.start()
	r.serves(names...)
	for i := range 4 {
		r.api.remove("Cluster/" + names[i])
		r.serves(names[i+1:]...)
	}
	r.api.remove("Cluster/e")
	s := r.until("the fifth of eight is held back", func(s mirror.Status) bool { return s.Next != nil && slices.Contains(s.Next.Lost, "5 of 8 Clusters") })
	r.api.apply(registryConfirms(s.Next.Generation))
	r.serves("f", "g", "h")
	r.api.remove("Cluster/f")
	r.serves("g", "h")
}

// What may be lost is not held back.
func TestNoShrink(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		r.api.apply(cluster(name, name))
	}
	r.start()
	r.serves("a", "b", "c", "d")
	r.api.remove("Cluster/a", "Cluster/b")
	r.serves("c", "d")
}

// The API is away: what was accepted is served, before and after a restart.
func TestAway(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("prod", "prod"))
	r.start()
	r.serves("prod")
	before := r.current()
	r.api.away(true)
	r.start()
	r.until("the API does not answer", func(s mirror.Status) bool {
		return s.Generation == before && s.Heard.IsZero() && !s.Since.IsZero() && slices.ContainsFunc(s.Resources, func(x mirror.ResourceStatus) bool { return !x.Synced && x.Error != "" })
	})
	r.serves("prod")
	r.api.away(false)
	r.api.apply(cluster("next", "next"))
	r.serves("next", "prod")
}

// Nothing is published before every resource has been listed: what has not been looks
// deleted.
func TestListedFirst(t *testing.T) {
	r := newRig(t)
	r.api.gone["webhookbindings"] = true
	r.api.apply(cluster("prod", "prod"))
	r.start()
	r.until("one resource is missing", func(s mirror.Status) bool {
		synced := 0
		for _, x := range s.Resources {
			if x.Synced {
				synced++
			}
		}
		return synced == len(s.Resources)-1 && r.api.tried("webhookbindings") > 1 // long after what there is could have been published
	})
	if _, err := os.Lstat(filepath.Join(r.directory, "current")); !errors.Is(err, os.ErrNotExist) {
		t.Error("something is published")
	}
}

// References are files of the generation; what they name may be missing, and changes.
func TestReferences(t *testing.T) {
	r := newRig(t)
	ca := authority(t, "one")
	r.api.apply(`apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: prod}
spec: {authentication: {certificate: {commonNames: [prod], caSecretRef: {name: roots, key: own.pem}}}}
---
` + cluster("other", "other"))
	r.start()
	r.serves("other")
	missing := refusedOf(r.until("it is unresolved", isRefused("Cluster/prod")), "Cluster/prod")
	if missing.Reason != mirror.ReasonUnresolved || missing.Problems[0].Field != "spec.authentication.certificate.caSecretRef" {
		t.Errorf("%+v", missing)
	}
	r.api.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: roots}\ndata: {own.pem: " + ca + "}")
	r.serves("other", "prod")
	r.until("its status says so", func(s mirror.Status) bool { return s.RefusedCount == 0 })
	before := r.current()
	r.api.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: roots}\ndata: {own.pem: " + authority(t, "two") + "}")
	r.until("the new one is served", func(s mirror.Status) bool { return s.Generation != before })
	r.serves("other", "prod")
	before = r.current()
	r.api.remove("Secret/roots")
	kept := refusedOf(r.until("it is unresolved", isRefused("Cluster/prod")), "Cluster/prod")
	if !kept.Kept || r.current() != before {
		t.Errorf("%+v", kept)
	}
	r.serves("other", "prod")
}

// Objects of every kind, with every reference, are what a directory would have.
func TestKinds(t *testing.T) {
	compiledIn, err := plugin.NewSet(kubernetes.Plugins()...)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.settings = func(s *mirror.Settings) { s.Compile.Plugins = compiledIn }
	a, err := pki.NewAuthority("kinds")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue(pki.OnLoopback("client"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pair.Write(dir, "client"); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return encoded(string(data))
	}
	r.api.apply(fmt.Sprintf(`apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: prod, labels: {env: prod}, finalizers: [a/b], managedFields: []}
spec:
  authentication: {certificate: {commonNames: [prod], caConfigMapRef: {name: roots}}}
  kubeconfigSecretRef: {name: prod}
status: {conditions: []}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookConfiguration
metadata: {name: policies}
spec:
  phase: Mutating
  caSecretRef: {name: pair}
  webhooks:
  - {name: a.example.com, clientConfig: {url: "https://a.example.com"}, sideEffects: None, admissionReviewVersions: [v1], reinvocationPolicy: IfNeeded}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: bind}
spec:
  webhooks: ["policies/*"]
  clusterSelector: {matchLabels: {env: prod}}
  timeout: 250ms
  endpoints: [{address: "10.0.0.1:443", caSecretRef: {name: pair}}, {address: "10.0.0.2:443", caConfigMapRef: {name: roots, key: ca.crt}}]
  clientCertificate: {secretRef: {name: pair}}
  bearerTokenSecretRef: {name: pair, key: bearer}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Plugin
metadata: {name: pull}
spec: {plugin: AlwaysPullImages, timeout: 1s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: roots}
binaryData: {ca.crt: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: pair}
data: {ca.crt: %[1]s, tls.crt: %[2]s, tls.key: %[3]s, bearer: %[4]s}
---
apiVersion: v1
kind: Secret
metadata: {name: prod}
data: {kubeconfig: %[5]s}`, encoded(string(a.PEM)), file("client.crt"), file("client.key"), encoded("a-token"),
		encoded(`{clusters: [{name: c, cluster: {server: "https://10.0.0.1"}}], users: [{name: u, user: {token: t}}], contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`)))
	r.start()
	s := r.until("everything is served", func(s mirror.Status) bool { return len(s.Objects) == 4 })
	if s.RefusedCount != 0 {
		t.Errorf("%+v", s.Refused)
	}
	settings := registry.Settings{Sources: manifest.Directories(filepath.Join(r.directory, "current"))}
	settings.Compile.Plugins = compiledIn
	served, problems, _ := registry.Validate(settings)
	if served == nil {
		t.Fatal(problems)
	}
	var chained []string
	for _, e := range append(served.Clusters["prod"].Mutating.Webhooks, served.Clusters["prod"].Validating.Webhooks...) {
		chained = append(chained, e.Configuration+"/"+e.Name)
	}
	if !slices.Contains(chained, "policies/a.example.com") || len(chained) != 3 {
		t.Errorf("the chain is %q", chained)
	}
}

// A ConfigMap with a label has manifests of Kubernetes' kinds, and no others: who may
// write ConfigMaps need not be who may write Clusters.
func TestConfigMaps(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("prod", "prod"))
	r.start()
	r.serves("prod")
	r.api.apply(`apiVersion: v1
kind: ConfigMap
metadata: {name: vendor, labels: {dispatcher.dev/source: "true"}}
data:
  webhooks.yaml: |
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfiguration
    metadata: {name: vendor}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unlabelled}
data: {webhooks.yaml: "nothing"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: intruder, labels: {dispatcher.dev/source: "true"}}
data:
  cluster.yaml: |
    apiVersion: dispatcher.dev/v1alpha1
    kind: Cluster
    metadata: {name: intruder}
    spec: {authentication: {anonymous: true}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: readme, labels: {dispatcher.dev/source: "true"}}
data: {README: hello}`)
	s := r.until("it is served", func(s mirror.Status) bool { return s.Objects["ConfigMap"] == 1 && s.RefusedCount == 2 })
	if refusedOf(s, "ConfigMap/intruder") == nil || refusedOf(s, "ConfigMap/readme") == nil {
		t.Errorf("%+v", s.Refused)
	}
	r.serves("prod")
	if read, err := filepath.Glob(filepath.Join(r.directory, "current", "configmap.vendor.webhooks.yaml")); err != nil || len(read) != 1 {
		t.Error(read, err)
	}
}

// A name of a file, in an object or in the kubeconfig of a Secret, would be one of another
// object's files.
func TestNamesOfFiles(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("good", "good") + `
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: file}
spec: {authentication: {anonymous: true}, kubeconfigFile: files/0123}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: nested}
spec: {authentication: {certificate: {commonNames: [nested]}}, kubeconfigSecretRef: {name: k}}
---
apiVersion: v1
kind: Secret
metadata: {name: k}
stringData: {}
data: {kubeconfig: ` + encoded(`{clusters: [{name: c, cluster: {server: "https://10.0.0.1"}}], users: [{name: u, user: {tokenFile: 0123}}], contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`) + `}`)
	r.start()
	r.serves("good")
	s := r.until("both are refused", func(s mirror.Status) bool { return s.RefusedCount == 2 })
	if refusedOf(s, "Cluster/file").Reason != mirror.ReasonUnresolved || !strings.Contains(refusedOf(s, "Cluster/nested").Problems[0].Reason, "names files") {
		t.Errorf("%+v", s.Refused)
	}
}

// A dispatcher that dies with a generation gets the one before, and never that one again.
func TestQuarantine(t *testing.T) {
	r := newRig(t)
	var dead atomic.Bool
	var poisoned atomic.Value
	poisoned.Store("")
	r.settings = func(s *mirror.Settings) {
		s.Live = func(context.Context) error {
			if link, _ := os.Readlink(filepath.Join(r.directory, "current")); dead.Load() && strings.TrimPrefix(link, "gen-") != poisoned.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
	}
	r.api.apply(cluster("prod", "prod"))
	r.start()
	r.serves("prod")
	good := r.current()
	poisoned.Store(good)
	dead.Store(true)
	r.api.apply(cluster("poison", "poison"))
	s := r.until("it is quarantined", func(s mirror.Status) bool { return len(s.Quarantined) == 1 && s.Generation == good })
	if s.Quarantined[0].Generation == good || !strings.Contains(s.Quarantined[0].Reason, "connection refused") {
		t.Errorf("%+v", s.Quarantined)
	}
	r.serves("prod")
	r.until("it stays out", func(s mirror.Status) bool { return s.Next != nil && s.Next.Quarantined })
	r.start()
	r.until("it stays out after a restart", func(s mirror.Status) bool { return s.Next != nil && s.Next.Quarantined && s.Generation == good })
	dead.Store(false)
	r.api.apply(cluster("poison", "healed"))
	r.serves("poison", "prod")
}

// A mirror that nobody tells of the dispatcher takes a restart in a trial for a crash.
func TestCrashedOnTrial(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("prod", "prod"))
	r.settings = func(s *mirror.Settings) { s.Probation = time.Millisecond }
	r.start()
	r.serves("prod")
	r.until("it has proven itself", func(mirror.Status) bool {
		_, err := os.Stat(filepath.Join(r.directory, "activating"))
		return errors.Is(err, os.ErrNotExist)
	})
	r.settings = func(*mirror.Settings) {}
	r.start()
	r.api.apply(cluster("poison", "poison"))
	r.serves("poison", "prod")
	r.start()
	r.serves("prod")
	r.until("it is quarantined", func(s mirror.Status) bool { return len(s.Quarantined) == 1 })
}

// A change waits for its random time, and one that says so does not.
func TestSpread(t *testing.T) {
	r := newRig(t)
	r.settings = func(s *mirror.Settings) { s.Spread = 1000 * time.Hour }
	r.api.apply(cluster("prod", "prod"))
	r.start()
	r.serves("prod") // the first one does not wait
	r.api.apply(cluster("later", "later"))
	s := r.until("it waits", func(s mirror.Status) bool { return s.Next != nil && !s.Next.At.IsZero() })
	if s.Generation != r.current() || s.Generation == s.Next.Generation {
		t.Errorf("%+v", s)
	}
	r.api.apply("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: urgent, annotations: {dispatcher.dev/activate: Now}}\nspec: {authentication: {certificate: {commonNames: [urgent]}}}")
	r.serves("later", "prod", "urgent")
}

// Replicas that see the same give a generation the same name.
func TestNames(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("b", "b") + "\n---\n" + cluster("a", "a") + "\n---\n" + webhook("w"))
	r.start()
	r.serves("a", "b")
	other := &rig{t: t, api: r.api, directory: t.TempDir(), settings: r.settings}
	other.start()
	defer other.stop()
	other.serves("a", "b")
	if r.current() != other.current() {
		t.Errorf("%s and %s", r.current(), other.current())
	}
}
