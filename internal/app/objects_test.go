// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// lister denies with the ConfigMaps that a namespace has, and what the first one says.
type lister struct{}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func (lister) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	list, err := plugin.List[corev1.ConfigMap](a, configMaps, "shop")
	if err != nil {
		return plugin.Answer{}, err
	}
	one, err := plugin.Get[corev1.ConfigMap](a, configMaps, "shop", "first")
	if err != nil || one == nil {
		return plugin.Answer{}, err
	}
	return a.Forbid("%d, and the first says %s", len(list), one.Data["says"]), nil
}

// stocked is the API of a cluster that has ConfigMaps in the namespace shop.
type stocked struct {
	*httptest.Server
	says    atomic.Pointer[string]
	hangs   atomic.Bool
	changed chan string // a watch says this
	watches atomic.Int64
	broken  chan struct{} // ends watches once it is closed
}

const firstConfigMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first","namespace":"shop","resourceVersion":"%d"},"data":{"says":%q}}`

func newStocked(t *testing.T) *stocked {
	s := &stocked{changed: make(chan string, 1), broken: make(chan struct{})}
	s.says.Store(new("one"))
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *stocked) serve(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	if s.hangs.Load() {
		<-r.Context().Done()
		return
	}
	switch {
	case r.URL.Query().Get("watch") != "":
		_ = http.NewResponseController(rw).Flush()
		if r.URL.Path != "/api/v1/configmaps" {
			<-r.Context().Done()
			return
		}
		s.watches.Add(1)
		defer s.watches.Add(-1)
		for {
			select {
			case says := <-s.changed:
				_, _ = fmt.Fprintf(rw, `{"type":"MODIFIED","object":`+firstConfigMap+`}`, 2, says)
				_ = http.NewResponseController(rw).Flush()
			case <-s.broken:
				return
			case <-r.Context().Done():
				return
			}
		}
	case strings.HasSuffix(r.URL.Path, "/first"):
		_, _ = fmt.Fprintf(rw, firstConfigMap, 1, *s.says.Load())
	case strings.HasSuffix(r.URL.Path, "configmaps"):
		_, _ = fmt.Fprintf(rw, `{"metadata":{"resourceVersion":"1"},"items":[`+firstConfigMap+`]}`, 1, *s.says.Load())
	default:
		_, _ = io.WriteString(rw, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}

// withAPI makes s the API of a cluster.
func (r *rig) withAPI(cluster string, s *stocked) {
	ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	r.write("registry/kubeconfig-"+cluster, fmt.Appendf(nil, `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: a, user: {token: abc}}]
`, s.URL, ca))
	r.cluster(cluster, "kubeconfigFile: kubeconfig-"+cluster)
}

// O1 A plugin reads what a cluster stores, as the watch brings it.
func TestO1PluginReadsObjects(t *testing.T) {
	r, s := newRig(t), newStocked(t)
	r.withAPI("east", s)
	r.object("Plugin", "lister", "{plugin: Lister}")
	r.start().denies(question{}, "1, and the first says one")
	s.changed <- "two"
	r.eventually("the watch has brought it", func() bool {
		return strings.Contains(r.denies(question{}).text, "1, and the first says two")
	})
	status := must(r.process.status(http.DefaultClient))
	if o := status.Clusters[0].Objects; len(o) != 1 || o[0].Resource != "configmaps.v1" || o[0].Cached != 1 || o[0].Stale || !o[0].Synced || o[0].Bytes == 0 {
		t.Errorf("status %+v", o)
	}
	scraped := r.process.scrape()
	for _, want := range []string{
		`dispatcher_objects_stale{cluster="east",resource="configmaps.v1"} 0.0`, `dispatcher_objects_cached{cluster="east",resource="configmaps.v1"} 1.0`,
		`dispatcher_objects_requests_total{cluster="east",resource="configmaps.v1"} 0.0`,
	} {
		if !strings.Contains(scraped, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// O3, O5 The API of one cluster hangs from the start: who needs its objects has failed,
// and says why; what another cluster is told, and how fast, is as ever.
func TestO5OtherClustersGoOn(t *testing.T) {
	r, s, hanging := newRig(t), newStocked(t), newStocked(t)
	hanging.hangs.Store(true)
	r.withAPI("east", s)
	r.withAPI("west", hanging)
	r.object("Plugin", "lister", "{plugin: Lister}")
	r.start()
	asked := make(chan string)
	go func() {
		defer close(asked)
		client := r.clientAs("west")
		for range 3 {
			asked <- r.denies(question{cluster: "west", client: client}).text
		}
	}()
	for range 3 {
		r.denies(question{cluster: "east"}, "1, and the first says one")
	}
	for text := range asked {
		if !strings.Contains(text, `configmaps are not synced: the cluster's API did not answer in time`) {
			t.Errorf("west is told %s", text)
		}
	}
	r.eventually("the readiness says so", func() bool {
		code, body := r.process.readiness()
		return code == http.StatusOK && strings.Contains(body, "configmaps.v1 of cluster west: never listed") && !strings.Contains(body, "cluster east")
	})
	hanging.hangs.Store(false)
	r.eventually("it recovers", func() bool {
		return strings.Contains(r.denies(question{cluster: "west"}).text, "1, and the first says one")
	})
}

// O7 Objects are there before a plugin is asked that a new configuration turns on, and
// nobody watches what none reads any more.
func TestO7ObjectsOfANewConfiguration(t *testing.T) {
	r, s := newRig(t), newStocked(t)
	r.withAPI("east", s)
	r.start().allows(question{})
	if n := s.watches.Load(); n != 0 {
		t.Errorf("%d watches that nobody needs", n)
	}
	r.object("Plugin", "lister", "{plugin: Lister}")
	r.eventually("the plugin is asked", func() bool { return !r.ask(question{}).allowed })
	r.denies(question{}, "1, and the first says one")
	if n := s.watches.Load(); n != 1 {
		t.Errorf("%d watches", n)
	}
	r.object("Plugin", "lister", "{plugin: Lister, mode: Warn}")
	r.eventually("it warns", func() bool { return r.ask(question{}).allowed })
	if n := s.watches.Load(); n != 1 {
		t.Errorf("%d watches after a change of another field", n)
	}
	r.remove("registry/Plugin-lister.yaml")
	r.eventually("nobody watches", func() bool { return s.watches.Load() == 0 })
}
