// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// api is a cluster's API as far as namespaces go: a list, a watch and a GET, in
// JSON, with the failures that tests ask for.
type api struct {
	*httptest.Server
	dir   string // of the token that the dispatcher has
	token string // that is valid

	mu         sync.Mutex
	kubernetes string // version
	version    int
	namespaces map[string]*metav1.PartialObjectMetadata
	watches    map[chan metav1.WatchEvent]bool
	served     map[string]int              // requests by verb
	does       map[string]http.HandlerFunc // instead of answering, by verb

	resource string            // not "": it has these objects, and no namespaces
	objects  map[string]string // by namespace and name
}

func newAPI(t testing.TB) *api {
	t.Helper()
	a := startAPI()
	a.dir = t.TempDir()
	a.give(a.token)
	t.Cleanup(a.stop)
	return a
}

// give puts a token where the dispatcher finds it.
func (a *api) give(token string) {
	if err := os.WriteFile(filepath.Join(a.dir, "token"), []byte(token+"\n"), 0o600); err != nil {
		panic(err)
	}
}

// accept makes another token the valid one.
func (a *api) accept(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
}

func startAPI() *api {
	a := &api{
		token:      "of-the-dispatcher",
		namespaces: map[string]*metav1.PartialObjectMetadata{},
		watches:    map[chan metav1.WatchEvent]bool{},
		served:     map[string]int{},
		does:       map[string]http.HandlerFunc{},
	}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.EnableHTTP2 = true
	a.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.StartTLS()
	return a
}

func (a *api) stop() {
	a.breakWatches()
	a.CloseClientConnections()
	a.Close()
}

func (a *api) access() manifest.KubeAccess {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	return manifest.KubeAccess{
		Server: a.URL, ServerName: "example.com", CA: string(ca),
		Credential: manifest.CredentialSource{TokenFile: filepath.Join(a.dir, "token"), Roots: a.dir},
	}
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces"), "/")
	verb := "list"
	switch {
	case r.URL.Path == "/version":
		verb = "version"
	case strings.HasPrefix(r.URL.Path, "/openapi/"):
		verb = "openapi"
	case strings.HasSuffix(r.URL.Path, "/apis/authorization.k8s.io/v1/subjectaccessreviews") && r.Method == http.MethodPost:
		verb = "review"
	case name != "":
		verb = "get"
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	}
	if a.resource != "" && verb != "version" {
		verb, name = a.asked(r)
	}
	a.mu.Lock()
	a.served[verb]++
	instead, token := a.does[verb], a.token
	a.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		fails(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)(w, r)
	case instead != nil:
		instead(w, r)
	case verb == "watch":
		a.watch(w, r)
	case verb == "list" && a.resource == "":
		a.list(w)
	case verb == "list", verb == "live":
		a.listObjects(w, name)
	case verb == "version":
		a.mu.Lock()
		version := a.kubernetes
		a.mu.Unlock()
		answer(w, http.StatusOK, map[string]string{"major": "1", "gitVersion": version})
	case a.resource != "":
		a.getObject(w, name)
	default:
		a.get(w, name)
	}
}

// fails is a behaviour: an error of the API.
func fails(code int32, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, int(code), metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "the words of the API",
		})
	}
}

// hangs is a behaviour: no answer as long as the client waits.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func (a *api) get(w http.ResponseWriter, name string) {
	a.mu.Lock()
	n := a.namespaces[name]
	a.mu.Unlock()
	if n == nil {
		fails(http.StatusNotFound, metav1.StatusReasonNotFound)(w, nil)
		return
	}
	answer(w, http.StatusOK, n)
}

func (a *api) list(w http.ResponseWriter) {
	a.mu.Lock()
	list := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(a.version)},
	}
	for _, n := range a.namespaces {
		list.Items = append(list.Items, *n)
	}
	a.mu.Unlock()
	answer(w, http.StatusOK, list)
}

// watch streams what changes from now on; tests change nothing between a list
// and its watch.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan metav1.WatchEvent, 1024) // nobody who sends waits
	a.mu.Lock()
	a.watches[events] = true
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, events)
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e, open := <-events:
			if !open {
				return
			}
			_ = json.NewEncoder(w).Encode(e)
			_ = flush.Flush()
		}
	}
}

// put creates a namespace or changes its labels.
func (a *api) put(name string, labels map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	n := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, ResourceVersion: fmt.Sprint(a.version),
			Annotations: map[string]string{"owner": "ann", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
		},
	}
	event := "ADDED"
	if a.namespaces[name] != nil {
		event = "MODIFIED"
	}
	a.namespaces[name] = n
	a.send(event, n)
}

func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	n := a.namespaces[name]
	delete(a.namespaces, name)
	a.send("DELETED", n)
}

func (a *api) send(event string, object any) {
	raw, _ := json.Marshal(object)
	for watch := range a.watches {
		e := metav1.WatchEvent{Type: event}
		e.Object.Raw = raw
		watch <- e
	}
}

// expire ends the watches as an API server does that has forgotten what they
// began with.
func (a *api) expire() {
	a.mu.Lock()
	a.send("ERROR", metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
	})
	a.mu.Unlock()
	a.breakWatches()
}

func (a *api) breakWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for watch := range a.watches {
		close(watch)
		delete(a.watches, watch)
	}
}

// now makes a verb behave in another way; nil: as usual.
func (a *api) now(verb string, does http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.does[verb] = does
}

func (a *api) times(verb string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.served[verb]
}

func (a *api) watched() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watches)
}
