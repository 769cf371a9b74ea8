// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/fleet"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 60 * time.Second

// world is processes of the shipped binary behind a balancer of connections, and
// API servers that call it.
type world struct {
	t         *testing.T
	dir       string
	binary    string
	authority *pki.Authority
	front     *proxy.Proxy
	replicas  []replicaProcess
	calls     chan struct{} // one for each call that somebody waits for
}

type replicaProcess struct {
	*process.Process
	listen, admin string
}

// build returns the binary.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "dispatcher")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/dispatcher").CombinedOutput(); err != nil {
		t.Fatalf("build the dispatcher: %v\n%s", err, out)
	}
	return binary
}

// newWorld returns a world whose replicas are configured with more.
func newWorld(t *testing.T, binary, more string) *world {
	t.Helper()
	authority, err := pki.NewAuthority("replicas")
	w := &world{t: t, dir: t.TempDir(), binary: binary, authority: authority, calls: make(chan struct{})}
	w.must(err)
	w.write("ca.crt", authority.PEM)
	w.issue("serving", "dispatcher")
	w.issue("east", "east")
	w.write("registry/clusters.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\n"+
		"spec: {authentication: {certificate: {commonNames: [east]}}}\n"))
	w.write("dispatcher.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: DispatcherConfiguration\nlisten: 127.0.0.1:0\n"+
		"admin: {listen: \"127.0.0.1:0\"}\ntls: {certFile: serving.crt, keyFile: serving.key, clientCAFile: ca.crt}\n"+
		"sources: [{directory: registry}]\nreloadInterval: 100ms\n"+more+"\n"))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name string, data []byte) {
	path := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path, data, 0o600))
}

func (w *world) issue(file, name string) {
	pair, err := w.authority.Issue(pki.OnLoopback(name))
	w.must(err)
	w.must(pair.Write(w.dir, file))
}

// join starts one more replica and has the balancer know it.
func (w *world) join() {
	w.t.Helper()
	p, err := process.Start(exec.Command(w.binary, "serve", "--config", filepath.Join(w.dir, "dispatcher.yaml")), nil)
	w.must(err)
	w.t.Cleanup(p.Kill)
	r := replicaProcess{Process: p}
	r.listen, r.admin, err = p.Serving()
	w.must(err)
	w.replicas = append(w.replicas, r)
	w.retarget()
}

// leave has the balancer forget a replica: connections to come go to the others.
func (w *world) leave(r replicaProcess) {
	w.replicas = slices.DeleteFunc(w.replicas, func(other replicaProcess) bool { return other == r })
	w.retarget()
}

// tell tells the replicas how many they are.
func (w *world) tell() { w.write("fleet.json", fleet.Encode(len(w.replicas))) }

func (w *world) retarget() {
	var targets []string
	for _, r := range w.replicas {
		targets = append(targets, r.listen)
	}
	if w.front == nil {
		var err error
		w.front, err = proxy.Listen(targets[0])
		w.must(err)
		w.t.Cleanup(func() { _ = w.front.Close() })
	}
	w.front.Retarget(targets...)
}

// review is what an API server sends.
const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",` +
	`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},` +
	`"name":"p","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"p"}}}}`

// callers are API servers.
type callers struct {
	servers, workers int           // each has so many that call
	pace             time.Duration // between two calls of one
	idle             time.Duration // that a connection is kept
}

// kubeAPIServerIdle is how long kube-apiserver keeps a connection.
const kubeAPIServerIdle = 90 * time.Second

// call starts API servers that call until the returned function is called. Each
// has the transport of kube-apiserver's webhook client: HTTP/1.1, at most 25 idle
// connections.
func (w *world) call(as callers) (stop func()) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "east.crt"), filepath.Join(w.dir, "east.key"))
	w.must(err)
	ended := make(chan struct{})
	var running sync.WaitGroup
	for range as.servers {
		transport := &http.Transport{
			MaxIdleConnsPerHost: 25, IdleConnTimeout: as.idle,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS12, RootCAs: w.authority.Pool(), ServerName: "127.0.0.1",
				Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"},
			},
		}
		for range as.workers {
			running.Go(func() {
				pace := time.NewTicker(as.pace)
				defer pace.Stop()
				for {
					select {
					case <-ended:
						transport.CloseIdleConnections()
						return
					case <-pace.C:
					}
					if err := w.ask(&http.Client{Transport: transport}); err != nil {
						w.t.Errorf("a call is lost: %v", err)
						return
					}
					select {
					case w.calls <- struct{}{}:
					default: // nobody counts
					}
				}
			})
		}
	}
	return func() {
		close(ended)
		running.Wait()
	}
}

func (w *world) ask(c *http.Client) error {
	resp, err := c.Post("https://"+w.front.Addr()+"/v1/clusters/east/validate?timeout=10s", "application/json", strings.NewReader(review)) //nolint:noctx // bounded by the test
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"allowed":true`)) {
		err = fmt.Errorf("HTTP status %d: %s", resp.StatusCode, body)
	}
	return err
}

// counts returns the admissions that each replica has answered.
func (w *world) counts() []float64 {
	w.t.Helper()
	var all []float64
	for _, r := range w.replicas {
		all = append(all, w.metric(r, "dispatcher_requests_total{"))
	}
	return all
}

// metric returns the sum of a replica's series that begin so.
func (w *world) metric(r replicaProcess, series string) (sum float64) {
	w.t.Helper()
	resp, err := http.Get("http://" + r.admin + "/metrics") //nolint:noctx // bounded by the test
	w.must(err)
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[0], series) {
			value, err := strconv.ParseFloat(fields[1], 64)
			w.must(err)
			sum += value
		}
	}
	return sum
}

// busiest returns how many times the mean the busiest replica has of the next n calls.
func (w *world) busiest(n int) float64 {
	w.t.Helper()
	return slices.Max(w.shares(n)) * float64(len(w.replicas))
}

// shares returns each replica's part of the next n calls.
func (w *world) shares(n int) []float64 {
	w.t.Helper()
	before := w.counts()
	for end := time.After(patience); n > 0; n-- {
		select {
		case <-w.calls:
		case <-end:
			w.t.Fatal("no calls are made")
		}
	}
	after, total := w.counts(), 0.0
	for i := range after {
		after[i] -= before[i]
		total += after[i]
	}
	for i := range after {
		after[i] /= total
	}
	return after
}
