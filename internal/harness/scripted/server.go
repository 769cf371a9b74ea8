// SPDX-License-Identifier: Apache-2.0

// Package scripted serves webhooks that answer as a test says: properly, wrongly,
// late or not at all.
package scripted

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Server serves webhooks over TLS on loopback, each at a path of its own. Paths
// without one answer with 404, and a request that is no review with 400, unless it says
// to be protobuf.
type Server struct {
	// URL is https://host:port.
	URL string

	http *httptest.Server
	over chan struct{} // closed at the end

	mu      sync.Mutex
	answers map[string]Answer // by path
}

// Answer answers a call, on the goroutine of the request. It may panic with
// http.ErrAbortHandler to close the connection.
type Answer func(*Call)

// Serve starts a Server that shows the certificate; it must be closed.
func Serve(certificate tls.Certificate) *Server {
	shown := Showing(certificate)
	return ServeTLS(func() *tls.Config { return shown })
}

// Showing returns a configuration of TLS as a webhook's, without HTTP/2: API servers
// ask for that on loopback only.
func Showing(certificate tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}
}

// ServeTLS starts a Server that asks for the configuration of TLS for each
// connection; it must be closed. Who resumes a session gets on with the one
// configuration that has given it the ticket.
func ServeTLS(shown func() *tls.Config) *Server {
	s := &Server{answers: map[string]Answer{}, over: make(chan struct{})}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.handle))
	s.http.TLS = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return shown(), nil },
	}
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that end on purpose
	s.http.StartTLS()
	s.URL = s.http.URL
	return s
}

// Address returns host:port.
func (s *Server) Address() string { return s.http.Listener.Addr().String() }

// Handle makes the webhook at path answer like this from now on; nil takes it away.
// The one at "" answers at all paths that have no other.
func (s *Server) Handle(path string, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a == nil {
		delete(s.answers, path)
		return
	}
	s.answers[path] = a
}

// CloseIdle closes connections that carry no request now.
func (s *Server) CloseIdle() {
	s.http.Config.SetKeepAlivesEnabled(false)
	s.http.Config.SetKeepAlivesEnabled(true)
}

// Close ends the Server, and everything that hangs in it.
func (s *Server) Close() {
	close(s.over)
	s.http.CloseClientConnections()
	s.http.Close()
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c := &Call{ResponseWriter: w, Request: r, Body: body, over: s.over}
	isJSON := r.Header.Get("Content-Type") != "application/vnd.kubernetes.protobuf" // whose Review is the zero one
	if err != nil || isJSON && json.Unmarshal(body, &c.Review) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	if a := s.at(r.URL.Path); a != nil {
		a(c)
		return
	}
	http.NotFound(w, r)
}

func (s *Server) at(path string) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.answers[path]; a != nil {
		return a
	}
	return s.answers[""]
}
