// SPDX-License-Identifier: Apache-2.0

package script

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// Server serves webhooks at one address, each at the path of its name. Several
// Servers can serve the same webhooks: each is an Endpoint of them.
type Server struct {
	name   string
	start  time.Time
	hooks  *scripted.Server
	truths map[string]func(uid string) history.Answer

	mu        sync.Mutex
	behaviour map[string]Behaviour // by webhook; "" is for all others
	attempts  []history.Attempt
	turns     map[string]int  // of Statuses, by webhook
	asked     map[string]bool // paths
	strays    int             // requests for Elsewhere
	shown     *tls.Config     // to connections to come
}

// Config is the configuration of a Server.
type Config struct {
	Name        string    // as Endpoint of the attempts it records
	Start       time.Time // of the run: times are since then
	Certificate tls.Certificate
	// Truths are what the webhooks answer, by name. One whose path has a version
	// behind the name answers with the Validating truth of the path.
	Truths map[string]func(uid string) history.Answer
	// Handshake, if not nil, returns the TLS configuration of each connection; nil:
	// that of Certificate.
	Handshake func() *tls.Config
}

// Serve starts a Server on loopback; it must be closed.
func Serve(cfg Config) *Server {
	s := &Server{name: cfg.Name, start: cfg.Start, truths: cfg.Truths, behaviour: map[string]Behaviour{}, turns: map[string]int{}, asked: map[string]bool{}}
	s.shown = scripted.Showing(cfg.Certificate)
	s.hooks = scripted.ServeTLS(func() *tls.Config {
		if cfg.Handshake != nil {
			if c := cfg.Handshake(); c != nil {
				return c
			}
		}
		return s.security()
	})
	s.hooks.Handle("", s.handle)
	return s
}

// Address returns host:port.
func (s *Server) Address() string { return s.hooks.Address() }

// Close ends the Server, and everything that hangs in it.
func (s *Server) Close() { s.hooks.Close() }

// CloseIdle closes connections that carry no request now.
func (s *Server) CloseIdle() { s.hooks.CloseIdle() }

// Behave sets how a webhook answers from now on; "" is every webhook that has no
// behaviour of its own.
func (s *Server) Behave(webhook string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour[webhook] = b
}

// Present shows another certificate to connections from now on. As a server that has
// been restarted it does not know sessions from before.
func (s *Server) Present(c tls.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = scripted.Showing(c)
	s.shown.SessionTicketsDisabled = true
}

// WithoutTickets sends no session tickets to connections from now on, so that there
// is nothing between a request and its answer.
func (s *Server) WithoutTickets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = s.shown.Clone()
	s.shown.SessionTicketsDisabled = true
}

func (s *Server) security() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// Attempts returns what has arrived so far.
func (s *Server) Attempts() []history.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]history.Attempt(nil), s.attempts...)
}

// Asked reports whether a review has arrived at the path, which has no leading slash.
func (s *Server) Asked(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// Strays returns how many requests have followed a redirect.
func (s *Server) Strays() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strays
}

func (s *Server) handle(c *scripted.Call) {
	req := &c.Review.Request
	at := strings.TrimPrefix(c.Request.URL.Path, "/")
	webhook, version, _ := strings.Cut(at, "/")
	truth := s.truths[webhook]
	if version != "" {
		truth = Validating(at)
	}
	if truth == nil {
		s.stray(c)
		return
	}
	cluster := c.Request.Header.Get("Admission-Cluster")
	i, b := s.arrive(history.Attempt{
		UID: req.UID, Webhook: webhook, Version: version, Endpoint: s.name,
		Cluster: cluster, BodyHash: history.Hash(req.Object), Arrived: time.Since(s.start),
	})
	b = b.to(cluster, len(c.Body))
	if b.Hang || b.HangOn != "" && b.HangOn == req.Resource.Resource {
		c.Hang()
		return
	}
	s.work(c, b, webhook)
	intact := b.send(c, truth(c.UID()))
	s.answer(i, intact)
}

func (s *Server) stray(c *scripted.Call) {
	s.mu.Lock()
	s.strays++
	s.mu.Unlock()
	http.Error(c, "no such webhook", http.StatusNotFound)
}

// work takes as long as the behaviour says.
func (s *Server) work(c *scripted.Call, b Behaviour, webhook string) {
	if b.Capacity != nil {
		b.Capacity <- struct{}{}
		defer func() { <-b.Capacity }()
	}
	delay := b.Delay
	if b.SlowShare > 0 && float64(draw(s.name+webhook, c.UID())%10_000) < b.SlowShare*10_000 {
		delay += b.SlowBy
	}
	if delay > 0 {
		c.Wait(delay)
	}
}

// arrive records an attempt and returns its number and the behaviour for it.
func (s *Server) arrive(a history.Attempt) (int, Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, a)
	s.asked[path.Join(a.Webhook, a.Version)] = true
	b, ok := s.behaviour[a.Webhook]
	if !ok {
		b = s.behaviour[""]
	}
	if n := len(b.Statuses); n > 0 {
		b.Status = b.Statuses[s.turns[a.Webhook]%n]
		s.turns[a.Webhook]++
	}
	return len(s.attempts) - 1, b
}

func (s *Server) answer(i int, intact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[i].Answered, s.attempts[i].Intact = time.Since(s.start), intact
}

// review is an AdmissionReview with the answer.
func review(uid string, a history.Answer) string {
	response := map[string]any{"uid": uid, "allowed": a.Allowed}
	if !a.Allowed {
		response["status"] = map[string]any{"code": a.Code, "message": a.Message}
	}
	if a.Patch != nil {
		response["patch"], response["patchType"] = a.Patch, "JSONPatch"
	}
	text, _ := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
	return string(text) // of values of our own
}
