// SPDX-License-Identifier: Apache-2.0

package script

import (
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"

	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Server answers for all scripted webhooks.
type Server struct {
	*scripted.Server

	mu     sync.Mutex
	called map[Form]int
}

// allowPath is always answered with a plain allow.
const allowPath = "/allow"

// NewServer starts a Server with that certificate. The caller closes it.
func NewServer(certificate tls.Certificate) *Server {
	s := &Server{Server: scripted.Serve(certificate), called: map[Form]int{}}
	s.Add(map[string]Script{allowPath: {Allowed: true}})
	return s
}

// Add adds scripts by path.
func (s *Server) Add(plays map[string]Script) {
	for path, script := range plays {
		s.Handle(path, func(c *scripted.Call) { s.play(script, c) })
	}
}

// Remove forgets scripts by path.
func (s *Server) Remove(plays map[string]Script) {
	for path := range plays {
		s.Handle(path, nil)
	}
}

// Called returns how often a webhook answered in each Form.
func (s *Server) Called() map[Form]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.called)
}

// play counts a call, and answers it by its script.
func (s *Server) play(script Script, c *scripted.Call) {
	if !strings.HasPrefix(c.Review.APIVersion, "admission.k8s.io/") {
		http.Error(c, "this is no AdmissionReview", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.called[script.Form]++
	s.mu.Unlock()
	var object struct{ APIVersion, Form string }
	_ = json.Unmarshal(c.Review.Request.Object, &object) // it may be null
	q := &c.Review.Request
	resource, kind := metav1.GroupVersionResource(q.Resource), metav1.GroupVersionKind(q.Kind)
	seen := fmt.Sprintf("%s %s %s %s", resource.String(), kind.String(), object.APIVersion, object.Form)
	script.play(call{Call: c, apiVersion: c.Review.APIVersion, uid: q.UID, seen: seen})
}
