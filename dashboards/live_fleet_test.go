// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// fleet is two replicas of the dispatcher, with what they call.
type fleet struct {
	t         *testing.T
	dir       string
	program   string
	authority *pki.Authority
	hooks     *script.Server // all webhooks
	other     *script.Server // the other endpoint of the twin
	away      *proxy.Proxy   // of those webhooks that can be out of reach
	api       *proxy.Proxy   // of cluster north
	collector *proxy.Proxy   // of traces
	places    []string       // what stands for an address in testdata, and the address
	replicas  [2]*replica
}

// replica is a dispatcher at addresses that it keeps when it is started anew.
type replica struct {
	*process.Process
	name         string
	front, admin *proxy.Proxy
}

const aYear = 365 * 24 * time.Hour

func newFleet(t *testing.T) *fleet {
	t.Helper()
	authority, err := pki.NewAuthorityUntil("live", time.Now().Add(aYear))
	f := &fleet{t: t, dir: t.TempDir(), authority: authority}
	f.must(err)
	f.program = filepath.Join(f.dir, "dispatcher")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", f.program, "../cmd/dispatcher").CombinedOutput(); err != nil {
		t.Fatalf("build the dispatcher: %v\n%s", err, out)
	}
	f.write("ca.crt", string(authority.PEM))
	f.certify(aYear)
	f.hooks, f.other = f.serveWebhooks(script.Willing), f.serveWebhooks(unwilling)
	f.other.Behave("twin.example.com", script.Behaviour{SlowBy: 100 * time.Millisecond, SlowShare: 0.1}) // to be asked twice
	f.api, f.collector = f.before(f.serveNamespaces()), f.before(serveCollector())
	f.away = f.proxy(f.hooks.Address())
	f.places = []string{"$hooks", f.hooks.Address(), "$away", f.away.Addr(), "$other", f.other.Address(), "$api", f.api.Addr()}
	f.copy("kubeconfig", "kubeconfig")
	f.replicas = [2]*replica{f.replica("first"), f.replica("second")}
	return f
}

// replica configures and starts a replica.
func (f *fleet) replica(name string) *replica {
	f.t.Helper()
	r := &replica{name: name, front: f.proxy(""), admin: f.proxy("")}
	f.places = append(f.places, "$"+name, r.admin.Addr())
	for _, file := range []string{"dispatcher.yaml", "registry/clusters.yaml", "registry/webhooks.yaml", "registry/bindings.yaml"} {
		f.copy(file, filepath.Join(name, file))
	}
	f.start(r)
	return r
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// write replaces a file as a whole.
func (f *fleet) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	f.must(os.MkdirAll(filepath.Dir(path), 0o700))
	f.must(os.WriteFile(path+".new", []byte(text), 0o600))
	f.must(os.Rename(path+".new", path))
}

func (f *fleet) remove(name string) { f.must(os.Remove(filepath.Join(f.dir, name))) }

// copy writes a file of testdata with the places in it.
func (f *fleet) copy(from, to string) {
	f.t.Helper()
	f.write(to, strings.NewReplacer(f.places...).Replace(read(f.t, filepath.Join("testdata/live", from))))
}

// certify gives all replicas a serving certificate that lasts so long.
func (f *fleet) certify(lasting time.Duration) {
	f.t.Helper()
	pair, err := f.authority.Issue(pki.Subject{CommonName: "dispatcher", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(lasting)})
	f.must(err)
	f.write("serving.key", string(pair.Key))
	f.write("serving.crt", string(pair.Certificate))
}

// issue returns a certificate for a server on loopback, or a cluster.
func (f *fleet) issue(name string) tls.Certificate {
	f.t.Helper()
	pair, err := f.authority.Issue(pki.Subject{CommonName: name, DNSNames: []string{"hooks.example.com"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	f.must(err)
	certificate, err := pair.TLS()
	f.must(err)
	return certificate
}

func (f *fleet) proxy(target string) *proxy.Proxy {
	f.t.Helper()
	p, err := proxy.Listen(target)
	f.must(err)
	f.t.Cleanup(func() { _ = p.Close() })
	return p
}

// start starts a replica, and returns when it serves.
func (f *fleet) start(r *replica) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), f.program, "serve", "--config", filepath.Join(f.dir, r.name, "dispatcher.yaml"))
	cmd.Env = append(os.Environ(), "OTEL_TRACES_SAMPLER=always_on", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+f.collector.Addr(),
		"OTEL_BSP_SCHEDULE_DELAY=500", "OTEL_BSP_EXPORT_TIMEOUT=1000") // in milliseconds
	var err error
	r.Process, err = process.Start(cmd, nil)
	f.must(err)
	p := r.Process
	f.t.Cleanup(func() {
		p.Kill()
		if f.t.Failed() {
			f.t.Logf("the log of the %s replica ends:\n%s", r.name, p.Tail())
		}
	})
	listen, admin, err := p.Serving()
	f.must(err)
	r.front.Retarget(listen)
	r.admin.Retarget(admin)
}
