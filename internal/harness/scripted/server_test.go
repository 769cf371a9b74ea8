// SPDX-License-Identifier: Apache-2.0

package scripted_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Server, and a client that trusts it.
type world struct {
	*scripted.Server
	t      *testing.T
	client *http.Client
}

func newWorld(t *testing.T) world {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.OnLoopback("webhook"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.Pool()}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return world{scripted.Serve(certificate), t, &http.Client{Transport: transport}}
}

// ask posts a body, and returns the status and what is answered.
func (w world) ask(path, body string) string {
	w.t.Helper()
	resp, err := w.client.Post(w.URL+path, "application/json", strings.NewReader(body)) //nolint:noctx // bounded by the test
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Error(err)
	}
	return fmt.Sprintf("%s %d %s", resp.Proto, resp.StatusCode, strings.TrimSpace(string(text)))
}

const review = `{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u-1","object":{"a":1}}}`

func TestServer(t *testing.T) {
	w := newWorld(t)
	defer w.Close()
	allows := `HTTP/1.1 200 {"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":true}}`
	w.Handle("/allow", func(c *scripted.Call) { c.Respond(`"allowed":true`) })
	w.Handle("/cut", func(*scripted.Call) { panic(http.ErrAbortHandler) })
	w.Handle("/object", func(c *scripted.Call) { c.Send(http.StatusTeapot, c.Review.Request.Object) })
	for _, test := range []struct{ path, body, want string }{
		{"/allow", review, allows},
		{"/allow", "no", "HTTP/1.1 400 no review"},
		{"/cut", review, "no answer"},
		{"/object", review, `HTTP/1.1 418 {"a":1}`},
		{"/other", review, "HTTP/1.1 404 404 page not found"},
	} {
		if got := w.ask(test.path, test.body); got != test.want {
			t.Errorf("%s: %s, want %s", test.path, got, test.want)
		}
	}
	w.Handle("", func(c *scripted.Call) { c.Send(http.StatusOK, []byte("any")) })
	w.Handle("/allow", nil)
	if got := w.ask("/allow", review); got != "HTTP/1.1 200 any" {
		t.Errorf("taken away: %s", got)
	}
}

// What hangs ends with the server, and so does what is slow.
func TestClose(t *testing.T) {
	w := newWorld(t)
	arrived := make(chan struct{}, 2)
	w.Handle("/hang", func(c *scripted.Call) { arrived <- struct{}{}; c.Hang() })
	w.Handle("/slow", func(c *scripted.Call) { arrived <- struct{}{}; c.Wait(time.Hour) })
	asked := make(chan string, 2)
	for _, path := range []string{"/hang", "/slow"} {
		go func() { asked <- w.ask(path, review) }()
	}
	<-arrived
	<-arrived
	w.Close()
	<-asked
	<-asked
}

// What hangs ends when its caller has gone.
func TestHang(t *testing.T) {
	w := newWorld(t)
	defer w.Close()
	arrived, ended := make(chan struct{}), make(chan struct{})
	w.Handle("/hang", func(c *scripted.Call) { close(arrived); c.Hang(); close(ended) })
	conn, err := tls.Dial("tcp", w.Address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /hang HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(review), review)
	<-arrived
	conn.Close()
	<-ended
}
