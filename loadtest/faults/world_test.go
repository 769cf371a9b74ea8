// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
	"github.com/admission-dispatcher/dispatcher/loadtest/zone"
)

const patience = 30 * time.Second // bounds every wait

// Names of the webhooks. The hurt ones are served by the same Endpoints.
const (
	hurtFail   = "hurt-fail.example.com"
	hurtIgnore = "hurt-ignore.example.com"
	well       = "well.example.com"
)

// endpoint is one server of the hurt webhooks, with what stands before it.
type endpoint struct {
	*script.Server
	proxy *proxy.Proxy
}

// world is a dispatcher with its webhooks and callers.
type world struct {
	t         *testing.T
	dir       string
	binary    string
	start     time.Time
	authority *pki.Authority
	hurt      []endpoint
	well      *script.Server
	names     *zone.Server // where the dispatcher looks up names
	front     *proxy.Proxy // what callers dial
	servers   []*dispatcher
	killed    []time.Duration // when one of them was
	collector net.Listener    // of traces; nil: there is none
	clusters  []load.Cluster
	apis      map[string]*clusterAPI // by cluster; none: the row has none
	truths    map[string]func(uid string) history.Answer

	generations []generation    // of the configuration, beginning with the first
	started     []time.Duration // how long each took until it was ready
	moved       atomic.Int64    // connections at the new home
	strangers   leaving
	harm        *harm // of faults in turn; nil: there are none
	opened      circuitsOpened
	paused      time.Duration           // when the process was stopped
	asked       []int                   // questions to the name server, until each of lostZones began
	before      holdings                // of the first process, when all was well
	renewal     atomic.Pointer[renewal] // of certificates; nil: there is none
}

// dispatcher is one process.
type dispatcher struct {
	*process.Process
	address string
	admin   string // its admin listener

	reading sync.Mutex // held by whoever keeps the log from being read

	mu     sync.Mutex
	loaded []loaded
}

// loaded is a configuration as the log says.
type loaded struct {
	at   time.Duration
	hash string
}

func newWorld(t *testing.T, r *row) *world {
	t.Helper()
	authority, err := pki.NewAuthority("faults")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), start: time.Now(), authority: authority, truths: map[string]func(string) history.Answer{}}
	for _, h := range r.webhooks() {
		w.truths[h.Name] = h.Truth
	}
	for _, file := range []string{"ca.crt", "callers.crt", "webhooks.crt"} {
		w.write(file, authority.PEM)
	}
	w.issue("client", "dispatcher")
	w.issue("serving", "dispatcher")
	for range r.endpoints() {
		s := w.script(fmt.Sprintf("hurt-%d", len(w.hurt)))
		p, err := proxy.Listen(s.Address())
		w.must(err)
		t.Cleanup(func() { _ = p.Close() })
		w.hurt = append(w.hurt, endpoint{s, p})
	}
	w.well = w.script("well")
	w.names, err = zone.Listen(home)
	w.must(err)
	t.Cleanup(w.names.Close)
	for _, name := range []string{"east", "west", "north"} {
		w.cluster(name)
	}
	if r.apis != "" {
		w.startAPIs(r.apis)
	}
	w.binary = binary
	if r.injected != nil && os.Getenv("DISPATCHER") == "" { // which has the fault, too
		w.binary = build(t, r.injected)
	}
	w.configure(r)
	if r.traced {
		w.deadCollector(r.refuses)
	}
	w.front, err = proxy.Listen(w.serve(r).address)
	w.must(err)
	t.Cleanup(func() { _ = w.front.Close() })
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// script starts a server of all webhooks.
func (w *world) script(name string) *script.Server {
	s := script.Serve(script.Config{Name: name, Start: w.start, Certificate: w.certificate(w.authority, served), Truths: w.truths, Handshake: func() *tls.Config {
		if r := w.renewal.Load(); r != nil && name != "well" {
			return r.webhook(name)
		}
		return nil
	}})
	w.t.Cleanup(s.Close)
	return s
}

// served is who the webhooks are.
var served = pki.Subject{CommonName: "webhooks", DNSNames: []string{"hooks.example.com"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}

func (w *world) certificate(by *pki.Authority, s pki.Subject) tls.Certificate {
	w.t.Helper()
	pair, err := by.Issue(s)
	w.must(err)
	certificate, err := pair.TLS()
	w.must(err)
	return certificate
}

func (w *world) issue(file, name string) tls.Certificate {
	w.t.Helper()
	return w.issueBy(authority{w.authority, "faults"}, file, name)
}

// issueBy writes a certificate of the authority and its key.
func (w *world) issueBy(a authority, file, name string) tls.Certificate {
	w.t.Helper()
	pair, certificate := w.pair(a, name)
	w.write(file+".crt", pair.Certificate)
	w.write(file+".key", pair.Key)
	return certificate
}

// issued returns a certificate that nobody writes down.
func (w *world) issued(a authority, name string) tls.Certificate {
	w.t.Helper()
	_, certificate := w.pair(a, name)
	return certificate
}

func (w *world) pair(a authority, name string) (pki.Pair, tls.Certificate) {
	w.t.Helper()
	pair, err := a.Issue(pki.Subject{CommonName: name, DNSNames: []string{"hooks.example.com"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	w.must(err)
	certificate, err := pair.TLS()
	w.must(err)
	return pair, certificate
}

// cluster makes a caller with a certificate of its own.
func (w *world) cluster(name string) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.authority.PEM)
	w.clusters = append(w.clusters, load.Cluster{
		Name: name,
		TLS:  &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{w.issue(name, name)}, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12},
	})
}

// write replaces a file as a whole.
func (w *world) write(name string, data []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path+".tmp", data, 0o600))
	w.must(os.Rename(path+".tmp", path))
}

// lameDuck is how long a process that stops goes on serving.
const lameDuck = time.Second

const processConfiguration = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0", profiling: true}
tls: {certFile: serving.crt, keyFile: serving.key, clientCAFile: callers.crt}
sources: [{directory: registry}]
fileRoots: [.]
allowedNetworks: ["127.0.0.0/8"]
lameDuck: %v
log: {level: info}
dns: {server: %q, interval: %v, timeout: 200ms}
`

// home is where the name of the hurt webhooks leads as long as all is well.
var home = zone.Zone{Addresses: zone.Addresses("127.0.0.1")}

func (w *world) configure(r *row) {
	config := fmt.Sprintf(processConfiguration, lameDuck, w.names.Address(), namesEvery)
	if r.traced { // a pipe that nobody reads is soon full
		config = strings.Replace(config, "level: info", "level: debug, allowsPerSecond: 100000", 1)
	}
	if !strings.Contains(r.process, "reloadInterval") {
		config += "reloadInterval: 200ms\n"
	}
	w.write("dispatcher.yaml", []byte(config+r.process))
	var clusters strings.Builder
	for _, c := range w.clusters {
		kubeconfig := ""
		if a := w.apis[c.Name]; a != nil {
			kubeconfig = ", kubeconfigFile: " + c.Name + ".kubeconfig"
			w.write("registry/"+c.Name+".kubeconfig", a.kubeconfig())
		}
		fmt.Fprintf(&clusters, "---\napiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %[1]s}\nspec: {authentication: {certificate: {commonNames: [%[1]s]}}, kubernetesVersion: \"1.37\"%[2]s}\n", c.Name, kubeconfig)
	}
	w.write("registry/clusters.yaml", []byte(clusters.String()))
	w.write("registry/webhooks.yaml", manifests(r.webhooks()))
	w.write("registry/bindings.yaml", w.bindings(r))
	w.write("registry/objects.yaml", []byte("# what is decided in the process\n"+r.objects))
}

// bindings say where the webhooks are served.
func (w *world) bindings(r *row) []byte {
	var out strings.Builder
	bind := func(name, globs, more, authority string, addresses ...string) {
		fmt.Fprintf(&out, "---\napiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: %s}\nspec:\n  webhooks: [%s]\n%s  endpoints:\n", name, globs, more)
		for _, a := range addresses {
			fmt.Fprintf(&out, "  - {address: %q, serverName: hooks.example.com, caFile: ../%s}\n", a, authority)
		}
	}
	var hurt []string
	for _, e := range w.hurt {
		at := e.proxy.Addr()
		if r.named {
			at = "hooks.example.com" + at[strings.LastIndex(at, ":"):]
		}
		hurt = append(hurt, at)
	}
	bind("hurt", `"*/hurt-*"`, r.binding, "webhooks.crt", hurt...)
	bind("well", `"*/well*"`, "", "ca.crt", w.well.Address())
	return []byte(out.String())
}

// serve starts a process and returns when it serves.
func (w *world) serve(r *row) *dispatcher {
	w.t.Helper()
	command := w.binary + " serve --config " + filepath.Join(w.dir, "dispatcher.yaml")
	if r.descriptors > 0 {
		command = fmt.Sprintf("ulimit -n %d; exec %s", r.descriptors, command)
	}
	cmd := exec.Command("sh", "-c", "exec "+strings.TrimPrefix(command, "exec "))
	if r.descriptors > 0 {
		cmd = exec.Command("sh", "-c", command)
	}
	cmd.Env = append(os.Environ(), w.telemetry()...)
	d := &dispatcher{}
	var err error
	d.Process, err = process.Start(cmd, func(line []byte) { d.follow(line, w.start) })
	w.must(err)
	w.t.Cleanup(func() {
		d.Kill()
		if w.t.Failed() {
			w.t.Logf("the dispatcher's log ends:\n%s", d.Tail())
		}
	})
	d.address, d.admin, err = d.Serving()
	w.must(err)
	w.servers = append(w.servers, d)
	return d
}

// telemetry has every admission traced, to a collector that takes what it is sent
// and says nothing.
func (w *world) telemetry() []string {
	if w.collector == nil {
		return nil
	}
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + w.collector.Addr().String(), "OTEL_TRACES_SAMPLER=always_on", "OTEL_BSP_MAX_QUEUE_SIZE=64", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=16"}
}

// deadCollector accepts connections and leaves them alone, or refuses them.
func (w *world) deadCollector(refuses bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.collector = ln
	if refuses {
		w.must(ln.Close())
		return
	}
	w.t.Cleanup(func() { _ = ln.Close() })
}

// follow takes what a line of the log says.
func (d *dispatcher) follow(line []byte, start time.Time) {
	d.reading.Lock()
	defer d.reading.Unlock()
	var record struct{ Msg, Snapshot string }
	_ = json.Unmarshal(line, &record) // a line of another kind has none of these
	if record.Msg == "configuration loaded" {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.loaded = append(d.loaded, loaded{time.Since(start), record.Snapshot})
	}
}

func (d *dispatcher) configurations() []loaded {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]loaded(nil), d.loaded...)
}

// says reports how often the log has a message.
func (d *dispatcher) says(message string) int { return strings.Count(d.Log(), message) }

// now is the time of the record.
func (w *world) now() time.Duration { return time.Since(w.start) }

// pass lets time go by.
func pass(d time.Duration) { <-time.After(d) }
