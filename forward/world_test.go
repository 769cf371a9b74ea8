// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/forward"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// received is a request as the dispatcher got it.
type received struct {
	uri, cluster string
	header       http.Header
	body         []byte
}

// world is a dispatcher of the test's own, and a forwarder before it.
type world struct {
	t         *testing.T
	dir       string
	authority *pki.Authority
	server    *httptest.Server
	settings  forward.Settings
	forwarder *forward.Forwarder
	client    *http.Client
	end       context.CancelFunc
	ended     chan error

	mu       sync.Mutex
	requests []received
}

// newWorld starts a dispatcher that answers by the function, which may read the body again.
func newWorld(t *testing.T, answer http.HandlerFunc) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	var err error
	if w.authority, err = pki.NewAuthority("test"); err != nil {
		t.Fatal(err)
	}
	serving := w.issue("dispatcher", pki.OnLoopback("dispatcher"))
	w.issue("service", pki.OnLoopback("service", "forwarder.admission.svc"))
	w.issue("east", pki.Subject{CommonName: "east"})
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.requests = append(w.requests, received{r.RequestURI, r.TLS.PeerCertificates[0].Subject.CommonName, r.Header.Clone(), body})
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(rw, r)
	}))
	w.server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientCAs: w.authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	to, err := url.Parse(w.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.settings = forward.Settings{
		URL: to, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0",
		Files: forward.Files{
			ServingCert: w.path("service.crt"), ServingKey: w.path("service.key"),
			ClientCert: w.path("east.crt"), ClientKey: w.path("east.key"), CA: w.path("ca.crt"),
		},
	}
	w.write("ca.crt", w.authority.PEM)
	w.client = &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: w.authority.Pool(), ServerName: "forwarder.admission.svc"},
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// start starts the forwarder.
func (w *world) start() {
	w.t.Helper()
	var err error
	if w.forwarder, err = forward.New(w.settings); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.end, w.ended = cancel, make(chan error, 1)
	go func() { w.ended <- w.forwarder.Run(ctx) }()
	w.t.Cleanup(w.stop)
}

func (w *world) stop() {
	if w.end == nil {
		return
	}
	w.end()
	w.end = nil
	if err := <-w.ended; err != nil {
		w.t.Errorf("the forwarder ended with %v", err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// got returns what the dispatcher has received.
func (w *world) got() []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]received(nil), w.requests...)
}

// answer is what the caller got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// path0 is a path of the cluster east.
const path0 = "/v1/clusters/east/validate"

// call calls as a kube-apiserver does, with headers in pairs.
func (w *world) call(uri string, body []byte, headers ...string) answer {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return w.send(ctx, http.MethodPost, uri, bytes.NewReader(body), headers...)
}

func (w *world) send(ctx context.Context, method, uri string, body io.Reader, headers ...string) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "https://"+w.forwarder.Address().String()+uri, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(data), err}
}

// admin returns a page of the admin listener.
func (w *world) admin(path string) (int, string) {
	w.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + w.forwarder.AdminAddress().String() + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
