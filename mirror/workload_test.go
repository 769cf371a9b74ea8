// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/mirror"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// member is the API of a workload cluster.
type member struct {
	server *httptest.Server

	mu     sync.Mutex
	hooks  map[string]string // webhooks as JSON, by kind/name
	answer func(http.ResponseWriter, *http.Request)
}

func newMember(t *testing.T) *member {
	m := &member{hooks: map[string]string{}}
	m.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		answer := m.answer
		m.mu.Unlock()
		if answer == nil {
			answer = m.list
		}
		answer(w, r)
	}))
	t.Cleanup(func() {
		m.server.CloseClientConnections()
		m.server.Close()
	})
	return m
}

func (m *member) list(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method != http.MethodGet || r.URL.Query().Get("labelSelector") != "dispatcher.dev/mirror=true" || r.Header.Get("Authorization") != "Bearer a-token" {
		http.Error(w, "", http.StatusForbidden)
		return
	}
	items := []any{}
	for key, hooks := range m.hooks {
		kind, name, _ := strings.Cut(key, "/")
		if strings.HasSuffix(r.URL.Path, "/"+strings.ToLower(kind)+"s") {
			items = append(items, map[string]any{
				"metadata": map[string]any{"name": name, "labels": map[string]string{"dispatcher.dev/mirror": "true"}},
				"webhooks": json.RawMessage(hooks),
			})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{}, "items": items})
}

// set sets a configuration; "" removes it.
func (m *member) set(name, hooks string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hooks["ValidatingWebhookConfiguration/"+name] = hooks; hooks == "" {
		delete(m.hooks, "ValidatingWebhookConfiguration/"+name)
	}
}

func (m *member) answers(with func(http.ResponseWriter, *http.Request)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = with
}

// at is a list with one webhook that is served at a URL.
func at(url string) string {
	return fmt.Sprintf(`[{"name": "a.example.com", "clientConfig": {"url": %q}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
		"matchConditions": [{"name": "dispatched", "expression": "false"}]}]`, url)
}

// service is a list with one webhook that names a Service.
func service(namespace string) string {
	return fmt.Sprintf(`[{"name": "a.example.com", "clientConfig": {"service": {"namespace": %q, "name": "guard"}}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}]`, namespace)
}

// mirrors is a Cluster that allows it, and the Secret with its kubeconfig.
func (m *member) mirrors(name, more string) string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw}))
	kubeconfig := fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}], "users": [{"name": "u", "user": {"token": "a-token"}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}`, m.server.URL, ca)
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %[1]s}
data: {kubeconfig: %[2]s}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]s%[3]s}
spec:
  authentication: {certificate: {commonNames: [%[1]s]}}
  kubeconfigSecretRef: {name: %[1]s}
  services: [{names: ["policies/*"], gateway: "gateway.example.com:443"}]
  mirror: {hosts: [webhooks.example.com]}`, name, base64.StdEncoding.EncodeToString([]byte(kubeconfig)), more)
}

func newWorkloadRig(t *testing.T) *rig {
	r := newRig(t)
	r.settings = func(s *mirror.Settings) {
		s.Poll = 20 * time.Millisecond
		s.Live = func(context.Context) error { return nil } // else a restart counts as a crash
		s.Compile.Addresses = transport.AddressPolicy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	}
	return r
}

// calls waits until the webhooks of a cluster, as the dispatcher's own source gives them,
// are these: the configurations' names.
func (r *rig) calls(cluster string, want ...string) {
	r.t.Helper()
	var got []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		s := registry.Settings{Sources: manifest.Directories(r.directory + "/current")}
		s.Compile.Addresses = transport.AddressPolicy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		snapshot, problems, _ := registry.Validate(s)
		if snapshot == nil || len(problems) > 0 || snapshot.Clusters[cluster] == nil {
			continue
		}
		got = nil
		for _, e := range snapshot.Clusters[cluster].Validating.Webhooks {
			got = append(got, e.ID.Configuration)
			if len(e.Spec.MatchConditions) > 0 {
				r.t.Errorf("%s is called by the dispatcher under %v", e.ID.Configuration, e.Spec.MatchConditions)
			}
		}
		if slices.Equal(got, want) {
			return
		}
	}
	r.t.Fatalf("%s: %v are called, want %v", cluster, got, want)
}

func workloadOf(s mirror.Status, cluster string) mirror.WorkloadStatus {
	for _, w := range s.Workloads {
		if w.Cluster == cluster {
			return w
		}
	}
	return mirror.WorkloadStatus{}
}

// What has the label takes part in its own cluster; what calls another host, names a
// Service that is not reached, or is an entry of ours, is refused alone, and the others
// are served. A changed one that is bad keeps its last accepted version (E24).
func TestE24MirrorByLabel(t *testing.T) {
	r := newWorkloadRig(t)
	east, west := newMember(t), newMember(t)
	east.set("good", at("https://webhooks.example.com/a"))
	east.set("service", service("policies"))
	east.set("elsewhere", at("https://metadata.example.com/a"))
	east.set("port", at("https://webhooks.example.com:8443/a"))
	east.set("unreached", service("other"))
	east.set("ours", strings.ReplaceAll(at("https://webhooks.example.com/a"), "a.example.com", "x.admission-dispatcher.dispatcher.dev"))
	west.set("good", at("https://webhooks.example.com/b"))
	r.api.apply(east.mirrors("east", "") + "\n---\n" + west.mirrors("west", "") + "\n---\n" + cluster("plain", "plain") + "\n---\n" + webhook("all"))
	r.start()
	r.calls("east", "all", "east/good", "east/service")
	r.calls("west", "all", "west/good")
	r.calls("plain", "all")
	s := r.until("four are refused", func(s mirror.Status) bool { return s.RefusedCount == 4 })
	for name, field := range map[string]string{
		"elsewhere": "webhooks[0].clientConfig.url", "port": "webhooks[0].clientConfig.url",
		"unreached": "webhooks[0].clientConfig.service", "ours": "webhooks[0]",
	} {
		got := refusedOf(s, "Workload/east/ValidatingWebhookConfiguration/"+name)
		if got == nil || got.Kept || got.Problems[0].Field != field {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if w := workloadOf(s, "east"); !w.Answered || w.Served != 2 || w.Error != "" {
		t.Errorf("%+v", w)
	}
	east.set("good", at("https://elsewhere.example.com/a"))
	if kept := refusedOf(r.until("the change is refused", isRefused("Workload/east/ValidatingWebhookConfiguration/good")), "Workload/east/ValidatingWebhookConfiguration/good"); !kept.Kept {
		t.Errorf("%+v", kept)
	}
	r.calls("east", "all", "east/good", "east/service")
	// A host that is taken from the list is not called any more, even by what was accepted.
	r.api.apply(strings.ReplaceAll(east.mirrors("east", ""), "webhooks.example.com", "others.example.com"))
	r.calls("east", "all", "east/service")
}

// An API that hangs, is away, redirects or answers without an end holds up no other, and
// what was mirrored of its cluster stays, after a restart too (E25).
func TestE25WorkloadAPIsThatDoNotAnswer(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"is away": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"redirects": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
		},
		"no list": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
		"more pages": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"metadata": {"continue": "x"}, "items": []}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWorkloadRig(t)
			east, west := newMember(t), newMember(t)
			east.set("good", at("https://webhooks.example.com/a"))
			r.api.apply(east.mirrors("east", "") + "\n---\n" + west.mirrors("west", ""))
			r.start()
			r.calls("east", "east/good")
			east.answers(answer)
			west.set("new", at("https://webhooks.example.com/b"))
			r.calls("west", "west/new")
			r.calls("east", "east/good")
			r.start()
			west.set("newer", at("https://webhooks.example.com/b"))
			r.calls("west", "west/new", "west/newer")
			r.calls("east", "east/good")
			if name != "hangs" { // which is known after the timeout
				r.until("the error is told", func(s mirror.Status) bool { w := workloadOf(s, "east"); return w.Error != "" && !w.Answered })
			}
		})
	}
}

// A cluster has bounds, the incumbents stay within them, and what is too much is refused
// (E25).
func TestE25BoundsOfACluster(t *testing.T) {
	r := newWorkloadRig(t)
	east := newMember(t)
	var names []string
	for i := range 32 {
		names = append(names, fmt.Sprintf("east/m%02d", i))
		east.set(fmt.Sprintf("m%02d", i), at("https://webhooks.example.com/a"))
	}
	r.api.apply(east.mirrors("east", ""))
	r.start()
	r.calls("east", names...)
	for i := range 8 {
		east.set(fmt.Sprintf("a%02d", i), at("https://webhooks.example.com/a"))
	}
	r.until("eight are refused", func(s mirror.Status) bool {
		return s.RefusedCount == 8 && refusedOf(s, "Workload/east/ValidatingWebhookConfiguration/a00") != nil
	})
	r.calls("east", names...)
	for i := range 300 {
		east.set(fmt.Sprintf("b%03d", i), at("https://webhooks.example.com/a"))
	}
	r.until("too many are listed", func(s mirror.Status) bool { return strings.Contains(workloadOf(s, "east").Error, "more than 256") })
	r.calls("east", names...)
}

// Nothing of a workload cluster holds up or keeps out what the registry has: not a
// name that somebody was quicker to use, and not that everything there has gone, which
// waits for a confirmation by itself (E25).
func TestE25WorkloadsHoldUpNobody(t *testing.T) {
	r := newWorkloadRig(t)
	east := newMember(t)
	east.set("one", at("https://webhooks.example.com/a"))
	east.set("two", at("https://webhooks.example.com/a"))
	east.set("three", at("https://webhooks.example.com/a"))
	r.api.apply(east.mirrors("east", ""))
	r.start()
	r.calls("east", "east/one", "east/three", "east/two")
	for _, name := range []string{"one", "two", "three"} {
		east.set(name, "")
	}
	held := workloadOf(r.until("the loss is held", func(s mirror.Status) bool { return workloadOf(s, "east").Held != "" }), "east").Held
	r.api.apply(cluster("new", "new"))
	r.calls("new")
	r.calls("east", "east/one", "east/three", "east/two")
	r.api.apply(east.mirrors("east", ", annotations: {dispatcher.dev/confirm-mirror-shrink: \""+held+"\"}"))
	r.calls("east")

	east.set("squatted", at("https://webhooks.example.com/a"))
	r.calls("east", "east/squatted")
	r.api.apply(strings.Replace(webhook("squatted"), "metadata: {name: squatted}", "metadata: {name: squatted, annotations: {dispatcher.dev/cluster: east}}", 1) + "\n---\n" + cluster("newer", "newer"))
	r.until("both are served, under kinds of their own", func(s mirror.Status) bool {
		return s.Objects["WebhookConfiguration"] == 1 || refusedOf(s, "Workload/east/ValidatingWebhookConfiguration/squatted") != nil
	})
	r.until("the registry's is served", func(s mirror.Status) bool {
		return refusedOf(s, "WebhookConfiguration/squatted") == nil && s.Objects["Cluster"] == 3
	})
}

// What was new of a workload cluster in a generation with which the dispatcher crashed is
// not served again, and changes of the registry are (E25).
func TestE25CrashWithWhatIsMirrored(t *testing.T) {
	r := newWorkloadRig(t)
	var mu sync.Mutex
	crashes := false
	settings := r.settings
	r.settings = func(s *mirror.Settings) {
		settings(s)
		s.Probation = 3 * time.Second
		s.Live = func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if crashes {
				return errors.New("it is dead")
			}
			return nil
		}
	}
	east := newMember(t)
	r.api.apply(east.mirrors("east", ""))
	r.start()
	r.calls("east")
	before := r.current()
	east.set("poison", at("https://webhooks.example.com/a"))
	r.until("it is served", func(s mirror.Status) bool { return s.Generation != "" && s.Generation != before })
	mu.Lock()
	crashes = true
	mu.Unlock()
	r.until("it is quarantined", func(s mirror.Status) bool { return len(s.Quarantined) == 1 && len(s.Quarantined[0].Mirrored) == 1 })
	mu.Lock()
	crashes = false
	mu.Unlock()
	r.api.apply(cluster("new", "new"))
	r.calls("new")
	r.calls("east")
	r.until("it is refused", isRefused("Workload/east/ValidatingWebhookConfiguration/poison"))
}
