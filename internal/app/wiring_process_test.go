// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/fleet"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/loadtest/zone"
)

// processWires are the fields of the process's configuration.
func processWires() []wire {
	return []wire{
		{field: "apiVersion", by: "internal/config.TestProblems"},
		{field: "kind", by: "internal/config.TestProblems"},
		{field: "listen", value: "listen: 127.0.0.1:0", observe: func(t *testing.T, r *rig) {
			if at := r.start().process.app.Address().(*net.TCPAddr); !at.IP.IsLoopback() || at.Port == 8443 {
				t.Errorf("it listens at %v", at)
			}
		}},
		{field: "tls.certFile", value: "tls: {certFile: other.crt, keyFile: other.key}", observe: servesOther},
		{field: "tls.keyFile", value: "tls: {certFile: other.crt, keyFile: other.key}", observe: servesOther},
		{field: "tls.clientCAFile", value: "tls: {clientCAFile: callers.crt}", observe: func(_ *testing.T, r *rig) {
			callers := must(pki.NewAuthority("callers"))
			r.write("callers.crt", callers.PEM)
			pair := must(callers.Issue(pki.Subject{CommonName: "east"}))
			r.write("east.crt", pair.Certificate)
			r.write("east.key", pair.Key)
			r.start().allows(question{})
		}},
		{field: "tls.clientAuth", value: "tls: {clientAuth: IfGiven}", observe: func(_ *testing.T, r *rig) {
			r.cluster("east", "authentication: {anonymous: true}")
			r.start().allows(question{client: r.clientAs("")})
		}},
		{field: "admin.listen", value: `admin: {listen: "127.0.0.1:0"}`, observe: func(t *testing.T, r *rig) {
			if at := r.start().process.app.AdminAddress().(*net.TCPAddr); at.Port == 8081 {
				t.Errorf("it listens at %v", at)
			}
		}},
		{field: "admin.tls.certFile", by: "internal/app.TestAdminTLS"},
		{field: "admin.tls.keyFile", by: "internal/app.TestAdminTLS"},
		{field: "admin.tls.clientCAFile", by: "internal/app.TestAdminTLS"},
		{field: "admin.openMetrics", by: "internal/app.TestAdminTLS"},
		{field: "admin.profiling", value: "admin: {profiling: true}", observe: func(t *testing.T, r *rig) {
			if status, _ := r.start().admin("debug/pprof/"); status != http.StatusOK {
				t.Errorf("profiles: HTTP status %d", status)
			}
		}},
		{field: "sources[].directory", value: "sources: [{directory: registry}, {directory: more}]", observe: func(_ *testing.T, r *rig) {
			r.register(hook{name: "policy"})
			manifest := must(os.ReadFile(filepath.Join(r.dir, "registry/hook-policy.yaml")))
			r.remove("registry/hook-policy.yaml")
			r.write("more/hook.yaml", manifest)
			r.play((*call).deny)
			r.start().denies(question{}, "says policy")
		}},
		{field: "sources[].mirror", by: "internal/app.TestMirror"},
		{field: "sources[].otherKinds", value: "sources: [{directory: registry, otherKinds: Refuse}]", observe: func(_ *testing.T, r *rig) {
			r.configure("reloadInterval: 10ms")
			r.start()
			r.write("registry/other.yaml", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
			r.eventually("the change is refused", func() bool { return len(must(r.process.status(http.DefaultClient)).Problems) == 1 })
		}},
		{field: "fileRoots", value: "fileRoots: [outside]", observe: func(_ *testing.T, r *rig) {
			r.write("outside/ca.pem", r.authority.PEM)
			r.cluster("east", "authentication: {certificate: {commonNames: [east], caFile: "+r.dir+"/outside/ca.pem}}")
			r.start().allows(question{})
		}},
		{field: "reloadInterval", value: "reloadInterval: 20ms", observe: func(t *testing.T, r *rig) {
			identify := func(listener, name string) {
				r.issue(listener, pki.OnLoopback(name))
			}
			identify("admin", "policy")
			r.configure("admin: {tls: {certFile: admin.crt, keyFile: admin.key}}")
			r.play((*call).deny)
			r.start()
			listeners := map[string]string{"serving": r.process.app.Address().String(), "admin": r.process.app.AdminAddress().String()}
			const changes = 4
			quickly := func(change func(name string), has func(name string) bool) {
				r.within((changes-1)*2*time.Second, func() { // the first might come just in time
					for i := range changes {
						name := fmt.Sprint("policy", i)
						change(name)
						r.eventually("the change has come", func() bool { return has(name) })
					}
				})
			}
			quickly(func(name string) { r.register(hook{name: name}) },
				func(name string) bool { return strings.Contains(r.ask(question{}).text, "says "+name) })
			for listener, address := range listeners {
				quickly(func(name string) { identify(listener, name) },
					func(name string) bool { return servedName(t, r.world, address) == name })
			}
		}},
		{field: "allowEmpty", value: "allowEmpty: true", observe: func(t *testing.T, r *rig) {
			r.remove("registry/Cluster-east.yaml")
			r.remove("registry/hook-policy.yaml")
			if got := r.start().ask(question{}); got.status != http.StatusForbidden {
				t.Errorf("HTTP status %d, %v", got.status, got.err)
			}
		}},
		{field: "allowedNetworks", value: `allowedNetworks: ["127.0.0.0/8"]`, observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().denies(question{}, "says policy")
		}},
		{field: "cell", value: "cell: c7", observe: func(t *testing.T, r *rig) {
			r.cluster("west", "cell: c7")
			r.play((*call).deny)
			r.start().denies(question{cluster: "west"}, "says policy")
			if got := r.ask(question{}); got.status != http.StatusForbidden {
				t.Errorf("a cluster of no cell: HTTP status %d, %v", got.status, got.err)
			}
		}},
		{field: "bypass.defaults", value: "bypass: {defaults: false}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().denies(question{namespace: "kube-system"}, "says policy")
		}},
		{field: "bypass.dispatcherNamespace", value: "bypass: {dispatcherNamespace: shop}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().allows(question{}, "dispatcher-namespace")
		}},
		{field: "bypass.rules", value: "bypass: {rules: [{name: mine, users: [ann]}]}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().allows(question{}, `"mine"`)
		}},
		{field: "failOpen.defaults", value: "failOpen: {defaults: false}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).fail)
			r.start().denies(question{resource: "nodes", operation: "UPDATE", user: "system:kube-controller-manager"}, "HTTPStatus")
		}},
		{field: "failOpen.rules", value: "failOpen: {rules: [{name: mine, users: [ann]}]}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).fail)
			r.start().allows(question{}, "mine")
		}},

		{field: "limits.requestBytes", value: "limits: {requestBytes: 2000}", observe: func(_ *testing.T, r *rig) {
			r.start().denies(question{size: 3000}, `"code":413`)
		}},
		{field: "limits.bodyBytes", value: "limits: {requestBytes: 20000, bodyBytes: 80000}\ntimeouts: {body: 200ms}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).hang)
			r.start()
			var full atomic.Int64
			for range 8 { // of which not all are in half of it
				r.asking.Go(func() {
					if got := r.ask(question{size: 15_000}); strings.Contains(got.text, `"code":429`) {
						full.Add(1)
					}
				})
			}
			r.eventually("there is no more memory", func() bool { return full.Load() > 0 })
		}},
		{field: "limits.decompressRequests", value: "limits: {decompressRequests: true}", observe: func(_ *testing.T, r *rig) {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = io.WriteString(w, question{}.review())
			_ = w.Close()
			r.start().allows(question{body: packed.Bytes(), encoding: "gzip"})
		}},
		{field: "limits.responseBytes", value: "limits: {responseBytes: 1000}", observe: func(_ *testing.T, r *rig) {
			r.play(func(c *call) { c.say(`"allowed":true,"warnings":["` + strings.Repeat("x", 2000) + `"]`) })
			r.start().denies(question{}, "BadAnswer")
		}},
		{field: "limits.connections", value: "limits: {connections: 16}\ntimeouts: {headers: 1m}", observe: func(_ *testing.T, r *rig) {
			closed := r.start().closings(40)
			r.eventually("those beyond are closed", func() bool { return closed.Load() >= 24 })
		}},
		{field: "limits.connectionAge", value: "limits: {connectionAge: 1ns}", observe: func(t *testing.T, r *rig) {
			if got := r.start().allows(question{}); !got.close {
				t.Error("the connection stays")
			}
		}},
		{field: "limits.shadowCalls", value: "limits: {shadowCalls: 2}", observe: func(_ *testing.T, r *rig) {
			r.bind("mode: Shadow")
			r.play((*call).hang)
			r.start()
			for range 3 {
				r.allows(question{})
			}
			r.eventually("those beyond are dropped", func() bool { return r.logged("shadow call dropped") })
		}},
		{field: "limits.admissions", value: "limits: {admissions: 1}", observe: func(_ *testing.T, r *rig) {
			r.cluster("west", "")
			r.busy()
			r.denies(question{cluster: "west", timeout: "2s"}, "overloaded")
		}},
		{field: "limits.admissionsPerCluster", value: "limits: {admissionsPerCluster: 1}", observe: func(_ *testing.T, r *rig) {
			r.cluster("west", "")
			r.busy()
			r.denies(question{timeout: "2s"}, "overloaded")
			r.play((*call).deny)
			r.denies(question{cluster: "west"}, "says policy")
		}},
		{field: "limits.reviewBytes", value: "limits: {requestBytes: 20000, reviewBytes: 20000}", observe: func(_ *testing.T, r *rig) {
			r.busy()
			r.denies(question{size: 12_000, timeout: "2s"}, "overloaded")
		}},
		{field: "limits.callsPerEndpoint", value: "limits: {callsPerEndpoint: 1}", observe: func(_ *testing.T, r *rig) {
			r.busy()
			r.denies(question{timeout: "2s"}, "too many calls are under way")
		}},

		{field: "fleet.replicas", value: "fleet: {replicas: 4}", observe: func(t *testing.T, r *rig) {
			if _, text := r.start().admin("metrics"); !strings.Contains(text, "\ndispatcher_fleet_replicas 4") {
				t.Error("nobody knows of them")
			}
		}},
		{field: "fleet.file", value: "fleet: {file: fleet.json}\nreloadInterval: 20ms", observe: func(_ *testing.T, r *rig) {
			r.write("fleet.json", fleet.Encode(3))
			r.start()
			says := func(n int) func() bool {
				return func() bool {
					_, text := r.admin("metrics")
					return strings.Contains(text, fmt.Sprintf("\ndispatcher_fleet_replicas %d", n))
				}
			}
			r.eventually("three are known", says(3))
			r.write("fleet.json", fleet.Encode(6))
			r.eventually("six are known", says(6))
		}},
		{field: "fleet.callsPerEndpoint", value: "fleet: {replicas: 4, callsPerEndpoint: 4}", observe: func(_ *testing.T, r *rig) {
			r.busy()
			r.denies(question{timeout: "2s"}, "too many calls are under way")
		}},
		{field: "fleet.admissionsPerCluster", value: "fleet: {replicas: 4, admissionsPerCluster: 1}", observe: func(_ *testing.T, r *rig) {
			r.cluster("west", "")
			r.busy()
			r.denies(question{timeout: "2s"}, "overloaded")
			r.play((*call).deny)
			r.denies(question{cluster: "west"}, "says policy")
		}},

		{field: "deadline.default", value: "deadline: {default: 3s}", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{timeout: "none"})
			r.toldWithin(3)
		}},
		{field: "deadline.max", value: "deadline: {max: 3s}", observe: func(t *testing.T, r *rig) {
			r.start().allows(question{})
			r.toldWithin(3)
			// The check of configurations knows it too.
			if !r.logged("is longer than the whole admission may take in Cluster/east (3s)") {
				t.Error("no warning that a webhook may take longer")
			}
		}},
		{field: "deadline.grace", value: "deadline: {grace: 20s}", observe: func(_ *testing.T, r *rig) {
			r.register(hook{name: "policy"}, hook{name: "slow"})
			r.play(func(c *call) {
				if c.hook == "slow" {
					<-time.After(time.Second)
				}
				c.deny()
			})
			r.start().denies(question{}, "says policy", "says slow")
		}},
		{field: "deadline.impatience", value: "deadline: {impatience: 5s}", observe: func(t *testing.T, r *rig) {
			r.register(hook{name: "a-ignored", mutating: true, policy: "Ignore"}, hook{name: "b-following", mutating: true})
			r.start().allows(question{phase: "mutate"})
			if got := r.calls("a-ignored"); len(got) != 1 || got[0].timeout != "5s" {
				t.Errorf("it is called with timeout %q", got[0].timeout)
			}
		}},

		{field: "timeouts.headers", value: "timeouts: {headers: 50ms}", observe: func(_ *testing.T, r *rig) {
			conn := r.start().dial()
			r.within(5*time.Second, func() { _, _ = conn.Read(make([]byte, 1)) })
		}},
		{field: "timeouts.body", value: "timeouts: {body: 50ms}", observe: func(t *testing.T, r *rig) {
			conn := r.start().dialAs("east")
			review := question{}.review()
			_, _ = fmt.Fprintf(conn, "POST /v1/clusters/east/validate?timeout=30s HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(review), review[:200])
			r.within(5*time.Second, func() {
				if answer, _ := io.ReadAll(conn); !bytes.Contains(answer, []byte(`"code":408`)) {
					t.Errorf("answer %q", answer)
				}
			})
		}},
		{field: "timeouts.idle", value: "timeouts: {idle: 50ms}", observe: func(t *testing.T, r *rig) {
			if _, err := r.start().dialAs("east").Read(make([]byte, 1)); os.IsTimeout(err) {
				t.Error("the connection is still open")
			}
		}},
		{field: "timeouts.connect", value: "timeouts: {connect: 20s}", observe: func(_ *testing.T, r *rig) {
			r.register(hook{name: "policy", url: "https://" + r.slowHandshake(1500*time.Millisecond)})
			r.start().allows(question{})
		}},

		{field: "encoding", value: "encoding: Protobuf", observe: func(t *testing.T, r *rig) {
			r.start().allows(question{})
			if got := r.last().header.Get("Content-Type"); got != "application/vnd.kubernetes.protobuf" {
				t.Errorf("the webhook is sent %s", got)
			}
		}},
		{field: "lameDuck", value: "lameDuck: 0s", observe: func(_ *testing.T, r *rig) {
			r.start()
			r.within(10*time.Second, r.process.end)
		}},
		{field: "dns.server", value: "dns: {server: 127.0.0.1:1}", observe: func(_ *testing.T, r *rig) {
			r.named(zone.Zone{Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
			r.play((*call).deny)
			r.start().denies(question{}, "says policy")
		}},
		{field: "dns.interval", value: "dns: {interval: 20ms}", observe: func(_ *testing.T, r *rig) {
			server := r.named(zone.Zone{Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
			r.start()
			// With the default, as many take longer than anybody waits here.
			r.eventually("the name is looked up again and again", func() bool { return server.Queries() > 40 })
		}},
		{field: "dns.timeout", value: "dns: {timeout: 50ms}", observe: func(_ *testing.T, r *rig) {
			r.named(zone.Zone{Silent: true})
			r.within(5*time.Second, func() { r.start() })
		}},

		{field: "log.format", by: "command/testdata/script/serve.txtar"},
		{field: "log.level", by: "command/testdata/script/serve.txtar"},
		{field: "log.allowsPerSecond", value: "log: {level: info, allowsPerSecond: 1}", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{})
			r.eventually("an allow is logged", func() bool { return r.logged("admission allowed") })
		}},
		{field: "telemetry.userNames", value: "telemetry: {userNames: true}", alone: true, observe: func(t *testing.T, r *rig) {
			receiver := newReceiver(t, overHTTP)
			r.start()
			askTraced(t, r.clientOf(r.process.app.Address().String()), sampled)
			r.eventually("the trace arrives", func() bool { return len(receiver.received(sampledTrace)) > 2 })
			for _, s := range receiver.received(sampledTrace) {
				if strings.HasPrefix(s.Name, "POST /") && attributeOf(s, "user.name") != "ann" {
					t.Errorf("the user's name is %q", attributeOf(s, "user.name"))
				}
			}
		}},
		{field: "telemetry.decisionLog.file", value: "telemetry: {decisionLog: {file: decisions}}", observe: func(t *testing.T, r *rig) {
			r.start().allows(question{})
			r.process.end()
			if text, err := os.ReadFile(filepath.Join(r.dir, "decisions")); bytes.Count(text, []byte("\n")) != 1 {
				t.Errorf("decisions %q, %v", text, err)
			}
		}},
		{field: "telemetry.decisionLog.maxBytes", value: "telemetry: {decisionLog: {file: decisions, maxBytes: 1}}", observe: func(t *testing.T, r *rig) {
			if got := r.decisionFiles(); got != 5 { // and four that are kept
				t.Errorf("%d files", got)
			}
		}},
		{field: "telemetry.decisionLog.maxFiles", value: "telemetry: {decisionLog: {file: decisions, maxBytes: 1, maxFiles: 2}}", observe: func(t *testing.T, r *rig) {
			if got := r.decisionFiles(); got != 3 {
				t.Errorf("%d files", got)
			}
		}},
		{field: "telemetry.decisionLog.allows", value: "telemetry: {decisionLog: {file: decisions, allows: false}}", observe: func(t *testing.T, r *rig) {
			r.start().allows(question{})
			r.play((*call).deny)
			r.denies(question{})
			r.process.end()
			if text, err := os.ReadFile(filepath.Join(r.dir, "decisions")); bytes.Count(text, []byte("\n")) != 1 {
				t.Errorf("decisions %q, %v", text, err)
			}
		}},
		{field: "telemetry.decisionLog.objects", by: "internal/app.TestMaskedCanaries"},
		{field: "telemetry.decisionLog.mask", by: "internal/app.TestMaskedCanaries"},
		{field: "registration.url", by: "command/testdata/script/registration.txtar"},
		{field: "registration.caFile", by: "command/testdata/script/registration.txtar"},
	}
}

func servesOther(t *testing.T, r *rig) {
	r.issue("other", pki.OnLoopback("other"))
	if name := servedName(t, r.world, r.start().process.app.Address().String()); name != "other" {
		t.Errorf("%s is served", name)
	}
}

// busy has east make one call that hangs, with a review of 12 KB.
func (r *rig) busy() {
	r.t.Helper()
	r.play((*call).hang)
	r.start()
	r.asks(question{size: 12_000})
	r.eventually("a call is under way", func() bool { return len(r.calls("policy")) > 0 })
}

// toldWithin fails the test unless the webhook is told that it has so many seconds,
// rounded up, or less, and more than none.
func (r *rig) toldWithin(seconds int) {
	r.t.Helper()
	told := must(time.ParseDuration(r.last().timeout))
	if told <= 0 || told > time.Duration(seconds)*time.Second {
		r.t.Errorf("the webhook is called with timeout %v", told)
	}
}

// decisionFiles returns how many files of decisions there are after eight.
func (r *rig) decisionFiles() int {
	r.start()
	for range 8 {
		r.allows(question{})
	}
	r.process.end()
	return len(must(filepath.Glob(filepath.Join(r.dir, "decisions*"))))
}

// named gives the webhook a name that only a DNS server of the rig knows.
func (r *rig) named(z zone.Zone) *zone.Server {
	r.t.Helper()
	server := must(zone.Listen(z))
	r.t.Cleanup(server.Close)
	r.configure("dns: {server: " + server.Address() + "}")
	_, port, _ := net.SplitHostPort(r.another(r.authority, pki.Subject{DNSNames: []string{"policy.test"}}))
	r.register(hook{name: "policy", url: "https://policy.test:" + port})
	return server
}

// slowHandshake is a server of the rig's webhooks that lets each TLS handshake wait.
func (r *rig) slowHandshake(pause time.Duration) (address string) {
	r.t.Helper()
	pair := must(must(r.authority.Issue(pki.Subject{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})).TLS())
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: http.HandlerFunc(r.serve), ReadHeaderTimeout: patience, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(pausing{ln, pause, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}})
	}()
	r.t.Cleanup(func() { _ = server.Close(); <-served })
	return ln.Addr().String()
}

// pausing is a listener whose connections begin their handshake after a pause.
type pausing struct {
	net.Listener
	pause time.Duration
	cfg   *tls.Config
}

func (p pausing) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&paused{conn, time.Now().Add(p.pause)}, p.cfg), nil
}

// paused is a connection of which nothing is read until then.
type paused struct {
	net.Conn
	until time.Time
}

func (p *paused) Read(b []byte) (int, error) {
	<-time.After(time.Until(p.until))
	return p.Conn.Read(b)
}
