// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// neighbourhood is a dispatcher that two clusters call, and one webhook of theirs,
// registered as /fail and /ignore.
type neighbourhood struct {
	*world
	t       *testing.T
	address string
	clients map[string]*http.Client
}

// newNeighbourhood starts one. The webhook denies what is called bad, and leaves
// what behave answers to it.
func newNeighbourhood(t *testing.T, more string, behave func(rw http.ResponseWriter, r *http.Request, cluster, name string) bool) *neighbourhood {
	t.Helper()
	w := newWorld(t)
	n := &neighbourhood{world: w, t: t, clients: map[string]*http.Client{}}
	w.issue("west", pki.Subject{CommonName: "west"})
	w.write("registry/west.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: west}\nspec: {authentication: {certificate: {commonNames: [west]}}}\n"))
	w.webhook.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct{ UID, Name string }
		}
		if json.NewDecoder(r.Body).Decode(&review) != nil || behave(rw, r, r.Header.Get("Admission-Cluster"), review.Request.Name) {
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":%t}}`,
			review.Request.UID, review.Request.Name != "bad")
	})
	w.write("registry/webhooks.yaml", policies(w))
	n.address = w.start("lameDuck: 0s\nlog: {level: error}\n" + more).awaitReady()
	for _, cluster := range []string{"east", "west"} {
		n.clients[cluster] = n.clientAs(cluster)
	}
	return n
}

// clientAs is a kube-apiserver of a cluster.
func (n *neighbourhood) clientAs(cluster string) *http.Client {
	certificate, err := tls.LoadX509KeyPair(n.dir+"/"+cluster+".crt", n.dir+"/"+cluster+".key")
	if err != nil {
		n.t.Fatal(err)
	}
	transport := &http.Transport{
		MaxIdleConnsPerHost: 400,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: n.authority.Pool(), Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}},
	}
	n.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// admission is one request of a cluster's.
type admission struct {
	cluster, namespace, resource, name string
	size                               int    // of the object, about
	timeout                            string // 10s
}

// ask returns whether the admission is allowed, and what of it is said.
func (n *neighbourhood) ask(a admission) (allowed bool, text string) {
	if a.timeout == "" {
		a.timeout = "10s"
	}
	if a.resource == "" {
		a.resource = "pods"
	}
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},`+
		`"resource":{"group":"","version":"v1","resource":%q},"name":%q,"namespace":%q,"operation":"CREATE","userInfo":{"username":"ann"},`+
		`"object":{"metadata":{"name":%q},"data":%q}}}`, a.resource, a.name, a.namespace, a.name, strings.Repeat("x", a.size))
	req, err := http.NewRequest(http.MethodPost, "https://"+n.address+"/v1/clusters/"+a.cluster+"/validate?timeout="+a.timeout, strings.NewReader(body)) //nolint:noctx // bounded by the test
	if err != nil {
		n.t.Error(err)
		return false, ""
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := n.clients[a.cluster].Do(req)
	if err != nil {
		if a.timeout == "10s" { // who is in a hurry may be turned away while it still writes
			n.t.Error(err)
		}
		return false, ""
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	var got struct{ Response struct{ Allowed bool } }
	if err := json.Unmarshal(answer, &got); err != nil {
		n.t.Errorf("%d: %s", resp.StatusCode, answer)
	}
	return got.Response.Allowed, string(answer)
}

// storm asks so often until it is ended. No more than 64 are under way.
func (n *neighbourhood) storm(perSecond int, next func(i int) admission) (end func()) {
	return n.stormOf(perSecond, next, func(bool, string) {})
}

// stormOf is a storm whose answers are told.
func (n *neighbourhood) stormOf(perSecond int, next func(i int) admission, told func(allowed bool, text string)) (end func()) {
	over, under := make(chan struct{}), make(chan struct{}, 64)
	var all sync.WaitGroup
	all.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			select {
			case under <- struct{}{}:
				all.Go(func() {
					told(n.ask(next(i)))
					<-under
				})
			default:
			}
		}
	})
	return func() { close(over); all.Wait() }
}

// TestOneClusterHarmsNoOther has east make its own calls fail in every way that its
// reviews can bring about, and west ask about 60 good pods under Fail, none of which
// is denied, and 60 bad ones under Ignore, none of which is allowed; but two may meet a
// machine that takes a second for a handshake.
func TestOneClusterHarmsNoOther(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
	}
	poison := func(i int) admission {
		return admission{cluster: "east", namespace: []string{"fail", "ignore"}[i%2], name: "poison"}
	}
	for _, row := range []struct {
		name      string
		perSecond int
		harm      func(rw http.ResponseWriter, r *http.Request)
		next      func(i int) admission
		beside    bool // healthy traffic of west
	}{
		{name: "10 a second answered 500", perSecond: 10, harm: status(http.StatusInternalServerError), next: poison},
		{name: "30 a second answered 500", perSecond: 30, harm: status(http.StatusInternalServerError), next: poison},
		{name: "100 a second answered 500", perSecond: 100, harm: status(http.StatusInternalServerError), next: poison},
		{name: "14 a second answered 500, beside traffic that is well", perSecond: 14, harm: status(http.StatusInternalServerError), next: poison, beside: true},
		{name: "objects that are too large, answered 413", perSecond: 30, harm: status(http.StatusRequestEntityTooLarge), next: func(i int) admission {
			a := poison(i)
			a.size = 100_000
			return a
		}},
		{name: "400", perSecond: 100, harm: status(http.StatusBadRequest), next: poison},
		{name: "large objects that take long, of callers in a hurry", perSecond: 20,
			harm: func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(400 * time.Millisecond):
				case <-r.Context().Done():
				}
			}, next: func(i int) admission {
				a := poison(i)
				a.size, a.timeout = 100_000, "200ms"
				return a
			}},
		{name: "calls that hang, of callers in a hurry", perSecond: 30, harm: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			next: func(i int) admission {
				a := poison(i)
				a.timeout = "300ms"
				return a
			}},
		{name: "200 invented resources", perSecond: 100, harm: status(http.StatusInternalServerError), next: func(i int) admission {
			a := poison(i)
			a.resource = fmt.Sprint("resource", i%200)
			return a
		}},
		{name: "one namespace answered 500", perSecond: 30, harm: status(http.StatusInternalServerError), next: func(int) admission {
			return admission{cluster: "east", namespace: "ignore", name: "poison"}
		}},
		{name: "a server that panics", perSecond: 60, harm: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, next: poison},
		{name: "answers that are none", perSecond: 60, harm: func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("{}")) }, next: poison},
		{name: "429 with Retry-After", perSecond: 60, harm: func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
		}, next: poison},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var harmed atomic.Int64
			n := newNeighbourhood(t, "", func(rw http.ResponseWriter, r *http.Request, _, name string) bool {
				if name != "poison" {
					return false
				}
				harmed.Add(1)
				row.harm(rw, r)
				return true
			})
			defer n.storm(row.perSecond, row.next)()
			if row.beside {
				defer n.storm(50, func(int) admission {
					return admission{cluster: "west", namespace: "fail", resource: "configmaps", name: "good"}
				})()
			}
			// Enough to open a breaker that took them for its Endpoint's.
			eventually(t, "east's reviews do harm", func() bool { return harmed.Load() >= 12 })
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			starved := 0
			for range 60 {
				allowedBad, bad := n.ask(admission{cluster: "west", namespace: "ignore", name: "bad"})
				allowedGood, good := n.ask(admission{cluster: "west", namespace: "fail", name: "good"})
				switch {
				case (allowedBad || !allowedGood) && starved < 2 && strings.Contains(bad+good, "could not be reached in time"):
					starved++ // this process, which is the webhooks' too, and has handshakes to make
				case allowedBad:
					t.Errorf("a bad pod is allowed: %s", bad)
				case !allowedGood:
					t.Errorf("a good pod is denied: %s", good)
				}
				<-pace.C // east has its turn
			}
		})
	}
}

// TestOneClusterTakesNotAllSlots has east hold as many slow calls as it gets; west's
// are made at once all the same.
func TestOneClusterTakesNotAllSlots(t *testing.T) {
	over := make(chan struct{})
	var slow atomic.Int64
	n := newNeighbourhood(t, "limits: {callsPerEndpoint: 32}\n", func(_ http.ResponseWriter, r *http.Request, cluster, _ string) bool {
		if cluster == "east" {
			slow.Add(1)
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}
		return false
	})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(over)
	for range 60 {
		all.Go(func() { n.ask(admission{cluster: "east", namespace: "fail", name: "good"}) })
	}
	eventually(t, "east has all that it may", func() bool { return slow.Load() == 24 })
	for range 10 {
		if allowed, text := n.ask(admission{cluster: "west", namespace: "ignore", name: "bad"}); allowed {
			t.Errorf("a bad pod is allowed: %s", text)
		}
		if allowed, text := n.ask(admission{cluster: "west", namespace: "fail", name: "good"}); !allowed {
			t.Errorf("a good pod is denied: %s", text)
		}
	}
	if slow.Load() != 24 {
		t.Errorf("east has %d of 32 slots", slow.Load())
	}
}
