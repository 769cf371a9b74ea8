// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// api is a Kubernetes API as far as a mirror asks it.
type api struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by plural/name
	events  []event
	more    chan struct{} // closed at the next event
	gone    map[string]bool
	asked   map[string]int
	down    bool
	closed  chan struct{}
}

type event struct {
	version int
	plural  string
	Type    string         `json:"type"`
	Object  map[string]any `json:"object"`
}

func newAPI(t *testing.T) *api {
	a := &api{t: t, version: 1, objects: map[string]map[string]any{}, more: make(chan struct{}), gone: map[string]bool{}, asked: map[string]int{}, closed: make(chan struct{})}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(func() {
		close(a.closed)
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

var plurals = map[string]string{
	"Cluster": "clusters", "WebhookBinding": "webhookbindings", "WebhookConfiguration": "webhookconfigurations",
	"Plugin": "plugins", "Registry": "registries", "EndpointSlice": "endpointslices", "Secret": "secrets", "ConfigMap": "configmaps",
}

// apply creates or replaces the objects of a manifest.
func (a *api) apply(manifest string) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range strings.Split(manifest, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			a.t.Fatal(err)
		}
		meta := o["metadata"].(map[string]any)
		plural := plurals[o["kind"].(string)]
		key := plural + "/" + meta["name"].(string)
		a.version++
		meta["resourceVersion"] = strconv.Itoa(a.version)
		what := "ADDED"
		if had := a.objects[key]; had != nil {
			what = "MODIFIED"
			meta["creationTimestamp"] = had["metadata"].(map[string]any)["creationTimestamp"]
		} else if meta["creationTimestamp"] == nil {
			meta["creationTimestamp"] = time.Unix(int64(1_000_000+a.version), 0).UTC().Format(time.RFC3339)
		}
		a.objects[key] = o
		a.record(event{a.version, plural, what, o})
	}
}

// remove deletes objects, by kind and name.
func (a *api) remove(keys ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		kind, name, _ := strings.Cut(key, "/")
		o := a.objects[plurals[kind]+"/"+name]
		delete(a.objects, plurals[kind]+"/"+name)
		a.version++
		o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(a.version)
		a.record(event{a.version, plurals[kind], "DELETED", o})
	}
}

// undefine deletes a CustomResourceDefinition, and so all its objects.
func (a *api) undefine(kind string) {
	a.mu.Lock()
	var keys []string
	for key := range a.objects {
		if plural, name, _ := strings.Cut(key, "/"); plural == plurals[kind] {
			keys = append(keys, kind+"/"+name)
		}
	}
	a.mu.Unlock()
	a.remove(keys...)
	a.mu.Lock()
	a.gone[plurals[kind]] = true
	a.mu.Unlock()
}

// bookmark tells everybody who watches that nothing has changed.
func (a *api) bookmark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for kind, plural := range plurals {
		a.version++
		version := "v1"
		if kind != "Secret" && kind != "ConfigMap" {
			version = "dispatcher.dev/v1alpha1"
		}
		a.record(event{a.version, plural, "BOOKMARK", map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}}})
	}
}

// tried returns how often a resource was asked for.
func (a *api) tried(plural string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[plural]
}

// away takes the API away, or back.
func (a *api) away(down bool) {
	a.mu.Lock()
	a.down = down
	a.mu.Unlock()
	a.server.CloseClientConnections()
}

func (a *api) record(e event) {
	text, err := json.Marshal(e.Object) // as of now
	if err != nil {
		a.t.Fatal(err)
	}
	e.Object = nil
	if err := json.Unmarshal(text, &e.Object); err != nil {
		a.t.Fatal(err)
	}
	a.events = append(a.events, e)
	close(a.more)
	a.more = make(chan struct{})
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	plural := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	w.Header().Set("Content-Type", "application/json")
	a.asked[plural]++
	switch {
	case a.down:
		a.mu.Unlock()
		http.Error(w, `{"kind":"Status","apiVersion":"v1","code":503}`, http.StatusServiceUnavailable)
	case a.gone[plural]:
		a.mu.Unlock()
		http.Error(w, `{"kind":"Status","apiVersion":"v1","code":404,"reason":"NotFound"}`, http.StatusNotFound)
	case r.URL.Query().Get("watch") != "":
		a.mu.Unlock()
		a.watch(w, r, plural)
	default:
		defer a.mu.Unlock()
		list := map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}}
		items := []any{}
		for key, o := range a.objects {
			if strings.HasPrefix(key, plural+"/") && selected(r, o) {
				items = append(items, o)
			}
		}
		list["items"] = items
		_ = json.NewEncoder(w).Encode(list)
	}
}

// selected reports whether the labels of an object are those of one equation in the query.
func selected(r *http.Request, o map[string]any) bool {
	label, value, is := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
	return !is || labels[label] == value
}

func (a *api) watch(w http.ResponseWriter, r *http.Request, plural string) {
	since, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		a.mu.Lock()
		events, more := a.events, a.more
		a.mu.Unlock()
		for _, e := range events {
			if e.plural == plural && e.version > since {
				since = e.version
				if !selected(r, e.Object) {
					continue
				}
				if json.NewEncoder(w).Encode(e) != nil {
					return
				}
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
			return
		case <-a.closed:
			return
		}
	}
}
