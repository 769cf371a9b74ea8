// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/mirror"
	"github.com/admission-dispatcher/dispatcher/registration"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// patience bounds every wait. Nothing is expected to come near it.
const patience = 30 * time.Second

// management is the Kubernetes API of the registry, as far as the controller asks it.
type management struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by plural/name
	changes chan struct{}             // closed at the next change
	closed  chan struct{}
	writes  map[string]int // of statuses, by plural/name
	refuses bool           // statuses
}

func newManagement(t *testing.T) *management {
	m := &management{t: t, version: 1, objects: map[string]map[string]any{}, changes: make(chan struct{}), closed: make(chan struct{}), writes: map[string]int{}}
	m.server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(func() {
		close(m.closed)
		m.server.CloseClientConnections()
		m.server.Close()
	})
	return m
}

// put creates or replaces the objects of a manifest, as a new generation of each.
func (m *management) put(manifest string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range strings.Split(manifest, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			m.t.Fatal(err)
		}
		kind, about := o["kind"].(string), o["metadata"].(map[string]any)
		plural := plurals[kind]
		if plural == "" {
			plural = strings.ToLower(kind) + "s"
		}
		key := plural + "/" + about["name"].(string)
		about["generation"], about["creationTimestamp"] = 1, time.Unix(int64(1_000_000+m.version), 0).UTC().Format(time.RFC3339)
		if had := m.objects[key]; had != nil {
			before := had["metadata"].(map[string]any)
			about["generation"], about["creationTimestamp"] = before["generation"].(int)+1, before["creationTimestamp"]
			o["status"] = had["status"]
		}
		m.store(key, o)
	}
}

func (m *management) store(key string, o map[string]any) {
	m.version++
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(m.version)
	m.objects[key] = o
	close(m.changes)
	m.changes = make(chan struct{})
}

func (m *management) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Query().Get("watch") != "":
		m.watch(w, r, path[len(path)-1])
		return
	case r.Method == http.MethodPatch:
		m.patch(w, r, path)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method == http.MethodPost {
		m.store("registries/registry", map[string]any{"apiVersion": "dispatcher.dev/v1alpha1", "kind": "Registry", "metadata": map[string]any{"name": "registry", "generation": 1}})
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(m.objects["registries/registry"])
		return
	}
	items := []any{}
	for key, o := range m.objects {
		if strings.HasPrefix(key, path[len(path)-1]+"/") {
			items = append(items, o)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(m.version)}, "items": items})
}

// patch applies a status.
func (m *management) patch(w http.ResponseWriter, r *http.Request, path []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := path[len(path)-3] + "/" + path[len(path)-2]
	m.writes[key]++
	if path[len(path)-1] != "status" || r.Header.Get("Content-Type") != "application/apply-patch+yaml" || r.URL.Query().Get("fieldManager") != fieldManager {
		m.t.Errorf("%s %s with %s", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	had := m.objects[key]
	if m.refuses || had == nil {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","code":403,"reason":"Forbidden","message":"no"}`, http.StatusForbidden)
		return
	}
	var given map[string]any
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		m.t.Error(err)
	}
	o := map[string]any{}
	for name, value := range had {
		o[name] = value
	}
	o["metadata"] = copyOf(had["metadata"].(map[string]any))
	o["status"] = given["status"]
	m.store(key, o)
	_ = json.NewEncoder(w).Encode(o)
}

func copyOf(o map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range o {
		out[name] = value
	}
	return out
}

// watch sends every object of a resource that is newer.
func (m *management) watch(w http.ResponseWriter, r *http.Request, plural string) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.WriteHeader(http.StatusOK)
	for {
		m.mu.Lock()
		latest, changes := m.version, m.changes
		var news [][]byte
		for key, o := range m.objects {
			version, _ := strconv.Atoi(o["metadata"].(map[string]any)["resourceVersion"].(string))
			if strings.HasPrefix(key, plural+"/") && version > since {
				text, _ := json.Marshal(map[string]any{"type": "MODIFIED", "object": o})
				news = append(news, text)
			}
		}
		m.mu.Unlock()
		since = latest
		for _, text := range news {
			if _, err := w.Write(append(text, '\n')); err != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changes:
		case <-r.Context().Done():
			return
		case <-m.closed:
			return
		}
	}
}

// status returns the status of an object.
func (m *management) status(plural, name string, into any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.objects[plural+"/"+name]; o != nil {
		text, _ := json.Marshal(o["status"])
		_ = json.Unmarshal(text, into)
	}
}

func (m *management) written() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, times := range m.writes {
		n += times
	}
	return n
}

// condition returns a condition of an object; nil: it has none.
func (m *management) condition(plural, name, kind string) *metav1.Condition {
	var s v1alpha1.Status
	m.status(plural, name, &s)
	return meta.FindStatusCondition(s.Conditions, kind)
}

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, patience)
}

// awaits waits until a condition has a status and a reason, and returns its message.
func (m *management) awaits(plural, name, kind string, status metav1.ConditionStatus, reason string) (message string) {
	m.t.Helper()
	var last *metav1.Condition
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		if last = m.condition(plural, name, kind); last != nil && last.Status == status && last.Reason == reason {
			return last.Message
		}
	}
	m.t.Fatalf("%s of %s/%s is not %s (%s) within %v: %+v", kind, plural, name, status, reason, patience, last)
	return ""
}

// replicas are the admin listeners of a fleet, as far as the controller asks them.
type replicas struct {
	mu     sync.Mutex
	status []map[string]any
	urls   []string
}

func newReplicas(t *testing.T, n int) *replicas {
	r := &replicas{status: make([]map[string]any, n)}
	for i := range n {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.status[i] == nil {
				http.Error(w, "not now", http.StatusServiceUnavailable)
				return
			}
			_ = json.NewEncoder(w).Encode(r.status[i])
		}))
		t.Cleanup(s.Close)
		r.urls = append(r.urls, strings.TrimPrefix(s.URL, "http://"))
	}
	return r
}

// serve has some replicas serve a generation, with more in their status.
func (r *replicas) serve(generation string, more map[string]any, which ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range which {
		status := copyOf(more)
		section, _ := status["mirror"].(map[string]any)
		section = copyOf(section)
		section["generation"] = generation
		status["mirror"] = section
		r.status[i] = status
	}
}

// rig is a controller of a management API, with clusters and replicas.
type rig struct {
	t          *testing.T
	management *management
	replicas   *replicas
	settings   func(*Settings)
}

func newRig(t *testing.T) *rig {
	return &rig{t: t, management: newManagement(t), replicas: newReplicas(t, 2), settings: func(*Settings) {}}
}

// start starts a controller, and returns it with what stops it.
func (r *rig) start() (*Controller, func()) {
	r.t.Helper()
	config := &rest.Config{Host: r.management.server.URL, QPS: -1}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		r.t.Fatal(err)
	}
	asking := &http.Transport{}
	s := Settings{
		Mirror: mirror.Settings{
			Namespace: "registry", Directory: r.t.TempDir(), Quiet: 5 * time.Millisecond, Late: 50 * time.Millisecond,
			Compile: compile.Options{Addresses: transport.AddressPolicy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
		},
		Replicas: Replicas{Addresses: r.replicas.urls, Client: &http.Client{Transport: asking}, Scheme: "http"},
		Registration: func(string) (registration.Options, error) {
			return registration.Options{URL: "https://d.example.com"}, nil
		},
		Poll: 20 * time.Millisecond, Interval: 50 * time.Millisecond, Every: time.Millisecond,
	}
	if s.Mirror.Client, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		r.t.Fatal(err)
	}
	r.settings(&s)
	ctx, cancel := context.WithCancel(context.Background())
	c := New(s)
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	stop := sync.OnceFunc(func() {
		cancel()
		running.Wait()
		client.CloseIdleConnections()
		asking.CloseIdleConnections()
	})
	r.t.Cleanup(stop)
	return c, stop
}

// decided waits until the controller has decided what holds of its latest decision, and
// has every replica serve it.
func (r *rig) decided(c *Controller, is func(*mirror.Decision) bool) string {
	r.t.Helper()
	var d *mirror.Decision
	until(r.t, "a decision", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		d = c.decision
		return d != nil && is(d)
	})
	r.replicas.serve(d.Generation, nil, 0, 1)
	return d.Generation
}

// workload is the API of a cluster, as far as it is about its registration.
type workload struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	has     map[string]map[string]any // by resource
	hang    chan struct{}             // not nil: until it is closed
	asked   int
	applied int
	forbids bool
}

const token = "secret-token-of-a-cluster"

func newWorkload(t *testing.T) *workload {
	w := &workload{t: t, has: map[string]map[string]any{}}
	w.server = httptest.NewTLSServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.server.Close)
	return w
}

func (w *workload) serve(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked++
	hang := w.hang
	w.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	path := strings.Split(r.URL.Path, "/")
	resource := path[len(path)-2]
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token || path[len(path)-1] != "admission-dispatcher":
		w.t.Errorf("%s with %q", r.URL, r.Header.Get("Authorization"))
	case w.forbids:
		out.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(out, `{"kind":"Status","message":"may not"}`)
	case r.Method == http.MethodGet && w.has[resource] == nil:
		out.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(out, `{"kind":"Status"}`)
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(out).Encode(w.has[resource])
	case r.Header.Get("Content-Type") == "application/json-patch+json":
		_ = json.NewEncoder(out).Encode(w.has[resource])
	default:
		var o map[string]any
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			w.t.Error(err)
		}
		if r.URL.Query().Get("dryRun") == "" {
			w.applied++
			w.has[resource] = o
		}
		_ = json.NewEncoder(out).Encode(o)
	}
}

// edit changes the validating webhooks that the cluster has.
func (w *workload) edit(change func(webhooks []any)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.has["validatingwebhookconfigurations"]["webhooks"].([]any))
}

func (w *workload) counts() (asked, applied int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked, w.applied
}

// cluster is the manifest of a Cluster with its kubeconfig.
func (w *workload) cluster(name, policy string) string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s, tls-server-name: example.com}}]
users: [{name: u, user: {token: %s}}]
`, w.server.URL, base64.StdEncoding.EncodeToString(authority), token)
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %[1]s}
data: {kubeconfig: %[2]s}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]s}
spec:
  authentication: {certificate: {commonNames: [%[1]s]}}
  kubeconfigSecretRef: {name: %[1]s}
  registration: {policy: %[3]q}`, name, base64.StdEncoding.EncodeToString([]byte(kubeconfig)), policy)
}

// configured is the manifest of a WebhookConfiguration, with a rule for each resource.
func configured(name string, resources ...string) string {
	return fmt.Sprintf(`apiVersion: dispatcher.dev/v1alpha1
kind: WebhookConfiguration
metadata: {name: %s}
spec:
  phase: Validating
  webhooks:
  - name: a.example.com
    clientConfig: {url: "https://webhook.example.com/check"}
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [%s]}]
    sideEffects: None
    admissionReviewVersions: [v1]`, name, strings.Join(resources, ", "))
}
