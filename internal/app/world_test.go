// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/app"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// patience bounds every wait of these tests. Nothing is expected to come near it.
const patience = 30 * time.Second

// world is what a process finds around it: a directory with certificates,
// manifests and configuration, and one webhook.
type world struct {
	t         testing.TB
	dir       string
	authority *pki.Authority
	webhook   *httptest.Server

	mu     sync.Mutex
	answer func(w http.ResponseWriter, uid string)
	seen   http.Header
	logs   bytes.Buffer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), authority: authority}
	w.says(`"allowed":true`)
	w.startWebhook()
	w.write("ca.crt", authority.PEM)
	w.issue("serving", pki.OnLoopback("dispatcher"))
	w.issue("east", pki.Subject{CommonName: "east"})
	w.write("registry/cluster.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\nspec: {authentication: {certificate: {commonNames: [east]}}}\n"))
	w.configure("policy")
	return w
}

func (w *world) startWebhook() {
	w.webhook = w.newWebhook(w.authority, pki.OnLoopback("webhook"), w.serveWebhook)
	w.webhook.StartTLS()
}

// newWebhook returns a server of webhooks that listens, and shakes no hands until it
// is started. Reviews come in forms that only serve reads.
func (w *world) newWebhook(by *pki.Authority, s pki.Subject, serve http.HandlerFunc) *httptest.Server {
	w.t.Helper()
	pair, err := by.Issue(s)
	if err != nil {
		w.t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(serve)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.t.Cleanup(server.Close)
	return server
}

func (w *world) serveWebhook(rw http.ResponseWriter, r *http.Request) {
	var review struct{ Request struct{ UID string } }
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	answer := w.answer
	w.seen = r.Header.Clone()
	w.mu.Unlock()
	answer(rw, review.Request.UID)
}

// headersOf returns the headers that the webhook sees during do.
func (w *world) headersOf(do func()) http.Header {
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// says makes the webhook answer a valid review with these members.
func (w *world) says(members string) {
	w.answers(func(rw http.ResponseWriter, uid string) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,%s}}`, uid, members)
	})
}

func (w *world) answers(f func(rw http.ResponseWriter, uid string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

// configure registers the webhook under a name.
func (w *world) configure(name string) { w.configureMore(name, "") }

// configureMore appends more fields of the webhook.
func (w *world) configureMore(name, more string) {
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	w.write("registry/webhooks.yaml", fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: %[1]s.example.com
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
%[4]s`, name, w.webhook.URL+"/"+name, ca, more))
}

func (w *world) issue(name string, s pki.Subject) {
	w.t.Helper()
	pair, err := w.authority.Issue(s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name+".crt", pair.Certificate)
	w.write(name+".key", pair.Key)
}

// write replaces a file as a whole.
func (w *world) write(name string, data []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		w.t.Fatal(err)
	}
}

// move gives a file another name.
func (w *world) move(from, to string) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, from))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(to, data)
}

// process is one dispatcher that runs.
type process struct {
	t    testing.TB
	app  *app.App
	stop context.CancelFunc
	done chan error
}

const fileConfig = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
tls: {certFile: serving.crt, keyFile: serving.key, clientCAFile: ca.crt}
sources: [{directory: registry}]
allowedNetworks: ["127.0.0.0/8"]
`

// start starts a dispatcher; more is appended to its configuration.
func (w *world) start(more string) *process {
	w.t.Helper()
	return w.startFrom(fileConfig + more)
}

// startFrom starts a dispatcher with this configuration, which it looks at all the
// time unless it says otherwise, and which logs everything unless it says otherwise.
func (w *world) startFrom(configuration string) *process {
	w.t.Helper()
	if !strings.Contains(configuration, "reloadInterval") {
		configuration += "reloadInterval: 20ms\n"
	}
	cfg := w.load(configuration)
	level := slog.LevelDebug
	if strings.Contains(configuration, "level: ") {
		if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
			w.t.Fatal(err)
		}
	}
	a, err := app.New(cfg, app.Options{Version: "test", Plugins: compiledIn(), Logger: slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(a)
}

// load reads a configuration from its file.
func (w *world) load(configuration string) *config.Config {
	w.t.Helper()
	w.write("dispatcher.yaml", []byte(configuration))
	cfg, problems := config.Load(filepath.Join(w.dir, "dispatcher.yaml"))
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	return cfg
}

func (w *world) run(a *app.App) *process {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{t: w.t, app: a, stop: stop, done: make(chan error, 1)}
	go func() { p.done <- a.Run(ctx) }()
	w.t.Cleanup(func() { p.end() })
	return p
}

// Write collects the log.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs.Write(line)
}

func (w *world) logged(text string) bool { return w.loggedTimes(text) > 0 }

func (w *world) loggedTimes(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.logs.String(), text)
}

// end stops the process and waits for it; further calls do nothing.
func (p *process) end() {
	p.stop()
	if err, open := <-p.done; open {
		close(p.done)
		if err != nil {
			p.t.Errorf("run: %v", err)
		}
	}
}

func (p *process) awaitReady() string {
	p.t.Helper()
	select {
	case <-p.app.Ready():
	case <-time.After(patience):
		p.t.Fatal("the process is not ready")
	}
	return p.app.Address().String()
}

// readiness returns the status and body of /readyz.
func (p *process) readiness() (int, string) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.app.AdminAddress().String() + "/readyz") //nolint:noctx // bounded by the test
	if err != nil {
		p.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// client returns a client with east's certificate that dials address whatever
// the URL says. It keeps connections as kube-apiserver does.
func (w *world) client(dial func() (net.Conn, error)) *http.Client {
	w.t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "east.crt"), filepath.Join(w.dir, "east.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return dial() },
		TLSClientConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			RootCAs:      w.authority.Pool(),
			Certificates: []tls.Certificate{certificate},
			NextProtos:   []string{"http/1.1"},
		},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (w *world) clientOf(address string) *http.Client {
	return w.client(func() (net.Conn, error) { return net.Dial("tcp", address) })
}

// verdict is what one admission came to.
type verdict struct {
	allowed  bool
	message  string
	warnings []string
}

// podReview is a review of a pod.
const podReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",` +
	`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},` +
	`"name":"p","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"p"}}}}`

// ask sends one review. The body is read, so that the connection can be kept.
func ask(c *http.Client) (verdict, error) {
	req, err := http.NewRequest(http.MethodPost, "https://127.0.0.1/v1/clusters/east/validate?timeout=10s", strings.NewReader(podReview)) //nolint:noctx // bounded by the test
	if err != nil {
		return verdict{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	return exchangeReview(c, req)
}

// exchangeReview sends a request with a review whose uid is u-1.
func exchangeReview(c *http.Client, req *http.Request) (verdict, error) {
	resp, err := c.Do(req)
	if err != nil {
		return verdict{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return verdict{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return verdict{}, fmt.Errorf("HTTP status %d: %s", resp.StatusCode, body)
	}
	var got struct {
		Response struct {
			UID      string
			Allowed  bool
			Warnings []string
			Status   struct{ Message string }
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return verdict{}, err
	}
	if got.Response.UID != "u-1" {
		return verdict{}, fmt.Errorf("the answer is to %q", got.Response.UID)
	}
	return verdict{got.Response.Allowed, got.Response.Status.Message, got.Response.Warnings}, nil
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
