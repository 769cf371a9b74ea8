// SPDX-License-Identifier: Apache-2.0

package script

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Server answers for all scripted webhooks.
type Server struct {
	URL string

	server *httptest.Server
	mu     sync.RWMutex
	plays  map[string]Script
	called map[Form]int
}

// allowPath is always answered with a plain allow.
const allowPath = "/allow"

// NewServer starts a Server with that certificate. The caller closes it.
func NewServer(certificate tls.Certificate) *Server {
	s := &Server{plays: map[string]Script{allowPath: {Allowed: true}}, called: map[Form]int{}}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	// Connections that are closed on purpose are nothing to log.
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	s.URL = s.server.URL
	return s
}

// Add adds scripts by path.
func (s *Server) Add(plays map[string]Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.plays, plays)
}

// Remove forgets scripts by path.
func (s *Server) Remove(plays map[string]Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range plays {
		delete(s.plays, path)
	}
}

// Called returns how often a webhook answered in each Form.
func (s *Server) Called() map[Form]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.called)
}

// Close stops the server, also webhooks that hang.
func (s *Server) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID      string                      `json:"uid"`
			Resource metav1.GroupVersionResource `json:"resource"`
			Kind     metav1.GroupVersionKind     `json:"kind"`
			Object   struct {
				APIVersion string `json:"apiVersion"`
				Form       string `json:"form"`
			} `json:"object"`
		} `json:"request"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil || !strings.HasPrefix(review.APIVersion, "admission.k8s.io/") {
		http.Error(w, "this is no AdmissionReview", http.StatusBadRequest)
		return
	}
	script, ok := s.script(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	q := &review.Request
	seen := fmt.Sprintf("%s %s %s %s", q.Resource.String(), q.Kind.String(), q.Object.APIVersion, q.Object.Form)
	script.play(call{ResponseWriter: w, request: r, apiVersion: review.APIVersion, uid: q.UID, seen: seen})
}

// script returns what is played at path, and counts it.
func (s *Server) script(path string) (Script, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	script, ok := s.plays[path]
	if ok {
		s.called[script.Form]++
	}
	return script, ok
}
