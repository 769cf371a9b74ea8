// SPDX-License-Identifier: Apache-2.0

package script

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Server answers for all scripted webhooks.
type Server struct {
	URL string

	server *httptest.Server
	mu     sync.RWMutex
	plays  map[string]Script
}

// allowPath is always answered with a plain allow.
const allowPath = "/allow"

// NewServer starts a Server with that certificate. The caller closes it.
func NewServer(certificate tls.Certificate) *Server {
	s := &Server{plays: map[string]Script{allowPath: {Allowed: true}}}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	// Connections that are closed on purpose are nothing to log.
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	s.URL = s.server.URL
	return s
}

// Set replaces the scripts by path.
func (s *Server) Set(plays map[string]Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays = map[string]Script{allowPath: {Allowed: true}}
	for path, script := range plays {
		s.plays[path] = script
	}
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
			UID string `json:"uid"`
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
	s.mu.RLock()
	script, ok := s.plays[r.URL.Path]
	s.mu.RUnlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	script.play(call{ResponseWriter: w, request: r, apiVersion: review.APIVersion, uid: review.Request.UID})
}
