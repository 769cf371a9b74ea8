// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/internal/pki"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
	"github.com/admission-dispatcher/dispatcher/loadtest/zone"
)

// nothing happens: what is wrong ends by itself.
func nothing(*world) {}

var deployments = load.Resource{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", User: "user"}

// saturate gives every Endpoint room for a little more than what it is asked.
func saturate(w *world) {
	for _, e := range w.hurt {
		b := script.Behaviour{Delay: 20 * time.Millisecond, Capacity: make(chan struct{}, 6)}
		e.Behave(hurtFail, b)
		e.Behave(hurtIgnore, b)
	}
}

// nasty answers in one bad way after the other.
func nasty(w *world) {
	forms := []script.Form{script.Cut, script.Huge, script.Headers, script.Informal, script.NotJSON, script.OtherUID}
	w.every(600*time.Millisecond, len(forms), func(i int) { behave(script.Behaviour{Form: forms[i]})(w) })
}

// statuses are those of HTTP errors that the contract names.
var statuses = func() []int {
	var all []int
	for s := 400; s <= 504; s++ {
		all = append(all, s)
	}
	return all
}()

// serverErrors are those of them that open a circuit.
var serverErrors = statuses[500-400:]

// every does something n times, in the background, the first time at once. What
// takes longer than the interval is followed by the next at once.
func (w *world) every(interval time.Duration, n int, do func(i int)) {
	begin := time.Now()
	do(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; i < n; i++ {
			select {
			case <-w.t.Context().Done():
				return
			case <-time.After(time.Until(begin.Add(time.Duration(i) * interval))):
			}
			do(i)
		}
	}()
	w.t.Cleanup(func() { <-done })
}

// chainOfFour has a webhook in its second place that is hurt.
func chainOfFour(hurt string, policy history.Policy) []history.Webhook {
	var all []history.Webhook
	for i, name := range []string{"well-1.example.com", hurt, "well-3.example.com", "well-4.example.com"} {
		all = append(all, history.Webhook{Name: name, Phase: history.Mutating, Order: i, FailurePolicy: history.Fail, SideEffects: history.NoSideEffects,
			Timeout: time.Second, Truth: script.Mutating(name)})
	}
	all[1].FailurePolicy = policy
	return all
}

var eight = func() []history.Webhook {
	var all []history.Webhook
	for i := range 8 {
		name := fmt.Sprintf("hurt-%d.example.com", i)
		if i == 0 {
			name = hurtFail
		}
		all = append(all, history.Webhook{Name: name, Phase: history.Validating, Order: i, FailurePolicy: history.Fail, SideEffects: history.NoSideEffects,
			Timeout: 10 * time.Second, Truth: script.Validating(name)})
	}
	return all
}()

// patient has more mutating webhooks than the time of an admission lasts for, if
// each of them hangs.
var patient = func() []history.Webhook {
	var all []history.Webhook
	for i := range 14 {
		name, policy := fmt.Sprintf("hurt-%02d.example.com", i), history.Ignore
		if i == 13 {
			name, policy = hurtFail, history.Fail
		}
		all = append(all, history.Webhook{Name: name, Phase: history.Mutating, Order: i, FailurePolicy: policy, SideEffects: history.NoSideEffects,
			Timeout: 10 * time.Second, Truth: script.Mutating(name)})
	}
	return all
}()

// unequalTwins answer late, the worse one first: with an error for one webhook,
// with no review for the other.
func unequalTwins(w *world) {
	soon, late := 60*time.Millisecond, 200*time.Millisecond
	w.hurt[0].Behave(hurtFail, script.Behaviour{Delay: soon, Form: script.Persuasive})
	w.hurt[0].Behave(hurtIgnore, script.Behaviour{Delay: soon, Form: script.NotJSON})
	w.hurt[1].Behave(hurtFail, script.Behaviour{Delay: late})
	w.hurt[1].Behave(hurtIgnore, script.Behaviour{Delay: late})
}

// blockLog keeps the log from being read until readLog.
func blockLog(w *world) { w.servers[0].reading.Lock() }

func readLog(w *world) { w.servers[0].reading.Unlock() }

// loseNames breaks DNS in one way after the other.
func loseNames(w *world) {
	zones := []zone.Zone{
		{Silent: true}, {}, {Failing: true}, {Addresses: home.Addresses, Delay: 5 * time.Second}, {Addresses: zone.Addresses("169.254.169.254")},
	}
	w.every(800*time.Millisecond, len(zones), func(i int) { w.names.Set(zones[i]) })
}

// disconnect makes callers that leave before their answer is there.
func disconnect(w *world) {
	behave(script.Behaviour{Delay: 300 * time.Millisecond})(w)
	w.every(20*time.Millisecond, 50, func(int) {
		c := &fasthttp.HostClient{Addr: w.front.Addr(), IsTLS: true, TLSConfig: w.clusters[0].TLS, MaxIdemponentCallAttempts: 1}
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI("https://" + w.front.Addr() + "/v1/clusters/east/validate?timeout=5s")
		req.Header.SetMethod(fasthttp.MethodPost)
		req.Header.SetContentType("application/json")
		req.SetBodyString(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"gone"`)
		_ = c.DoTimeout(req, resp, 10*time.Millisecond)
		c.CloseIdleConnections()
	})
}

// slowWell makes every webhook take its time, so that places are scarce.
func slowWell(w *world) {
	b := script.Behaviour{Delay: 100 * time.Millisecond}
	behave(b)(w)
	w.well.Behave(well, b)
}

// strangers connect, say nothing, and stay.
func strangers(n int) func(*world) {
	return func(w *world) {
		var conns []net.Conn
		for range n {
			if c, err := net.Dial("tcp", w.servers[0].address); err == nil {
				conns = append(conns, c)
			}
		}
		w.t.Cleanup(func() {
			for _, c := range conns {
				_ = c.Close()
			}
		})
	}
}

// replaceCertificates gives the dispatcher n new serving certificates, and new
// files of authorities for callers and for webhooks.
func replaceCertificates(n int) func(*world) {
	return func(w *world) {
		w.every(replaceEvery, n, func(i int) {
			w.issue("serving", "dispatcher")
			// The same authority, in other bytes: new Targets for all webhooks.
			w.write("ca.crt", append(bytes.Repeat([]byte("\n"), i%100+1), w.authority.PEM...))
		})
	}
}

// corrupt makes the configuration unreadable in several ways.
func corrupt(w *world) {
	good, err := os.ReadFile(filepath.Join(w.dir, "registry/webhooks.yaml"))
	w.must(err)
	steps := []func(){
		func() { w.write("registry/webhooks.yaml", []byte("kind: [")) },
		func() { w.write("registry/webhooks.yaml", good[:len(good)/2]) },
		func() { _ = os.Rename(filepath.Join(w.dir, "registry"), filepath.Join(w.dir, "away")) },
	}
	w.every(time.Second, len(steps), func(i int) { steps[i]() })
}

func stopAndContinue(w *world) {
	w.servers[0].Signal(syscall.SIGSTOP)
	go func() {
		pass(2 * time.Second)
		w.servers[0].Signal(syscall.SIGCONT)
	}()
}

// Rows that replace the process, its configuration or its certificates do so this
// often.
const (
	restartEvery = 2500 * time.Millisecond
	killEvery    = 1500 * time.Millisecond
	reloadEvery  = 60 * time.Millisecond
	replaceEvery = 180 * time.Millisecond
)

// lasting is how long so many take, and a little longer.
func lasting(interval time.Duration, n int) time.Duration {
	return time.Duration(n)*interval + 2*time.Second
}

// sized is one number in smoke size, and another in full size.
func sized(smoke, whole int) int {
	if full {
		return whole
	}
	return smoke
}

// rollingRestarts replaces the process n times, each by a successor that is up.
func rollingRestarts(n int) func(*world) {
	return func(w *world) {
		go w.every(restartEvery, n, func(int) {
			old := w.servers[len(w.servers)-1]
			w.front.Retarget(w.serve(&row{}).address)
			old.End()
		})
	}
}

// kills ends processes without warning; another replica is up each time.
func kills(n int) func(*world) {
	return func(w *world) {
		go w.every(killEvery, n, func(int) {
			old := w.servers[len(w.servers)-1]
			successor := w.serve(&row{})
			w.killed = append(w.killed, w.now())
			old.Signal(syscall.SIGKILL)
			w.front.Retarget(successor.address)
			old.Kill()
		})
	}
}

// reloads changes the configuration n times, every twentieth time for the worse.
func reloads(n int) func(*world) { return func(w *world) { w.reload(n) } }

func (w *world) reload(n int) {
	good, err := os.ReadFile(filepath.Join(w.dir, "registry/webhooks.yaml"))
	w.must(err)
	w.every(reloadEvery, n, func(i int) {
		if i%20 == 19 {
			w.write("registry/webhooks.yaml", []byte("kind: ["))
			return
		}
		w.write("registry/webhooks.yaml", fmt.Appendf(good[:len(good):len(good)], "# %d\n", i))
	})
}

// present has the hurt webhooks show another certificate, and their connections
// reset.
func present(issue func(w *world) tls.Certificate) func(*world) {
	return func(w *world) {
		c := issue(w)
		for _, e := range w.hurt {
			e.Present(c)
		}
		all(proxy.Fault{Sever: true})(w)
	}
}

func expired(w *world) tls.Certificate {
	s := served
	s.NotAfter = time.Now().Add(-time.Minute)
	return w.certificate(w.authority, s)
}

func ofAnotherAuthority(w *world) tls.Certificate {
	other, err := pki.NewAuthority("faults")
	w.must(err)
	return w.certificate(other, served)
}

func ofAnotherName(w *world) tls.Certificate {
	s := served
	s.DNSNames, s.IPs = []string{"other.example.com"}, nil
	return w.certificate(w.authority, s)
}
