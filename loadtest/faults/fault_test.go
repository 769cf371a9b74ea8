// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/tls"
	"fmt"
	"syscall"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// nothing happens: what is wrong ends by itself.
func nothing(*world) {}

var deployments = load.Resource{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", User: "user"}

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

// eight hang, with a timeout that is longer than their callers have.
func eight(policy history.Policy) []history.Webhook {
	var all []history.Webhook
	for i := range 8 {
		name := fmt.Sprintf("hurt-%d.example.com", i)
		if i == 0 {
			name = hurtFail
		}
		all = append(all, history.Webhook{Name: name, Phase: history.Validating, Order: i, FailurePolicy: policy, SideEffects: history.NoSideEffects,
			Timeout: 10 * time.Second, Truth: script.Validating(name)})
	}
	return all
}

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

// slowWell makes every webhook take its time, so that places are scarce.
func slowWell(w *world) {
	b := script.Behaviour{Delay: 100 * time.Millisecond}
	behave(b)(w)
	w.well.Behave(well, b)
}

// stopAndContinue has the process stand still while calls are under way. Those that
// come afterwards, all at once, are answered at once.
//
// What is asked in the last moments before is answered after the pause. Whether the
// process then sees its timers or its sockets first, these calls have missed their
// answers.
func stopAndContinue(w *world) {
	watchCircuits(w)
	behave(script.Behaviour{Delay: 2500 * time.Millisecond})(w)
	pass(300 * time.Millisecond)
	w.paused = w.now()
	w.servers[0].Signal(syscall.SIGSTOP)
	go func() {
		pass(2 * time.Second)
		behave(script.Behaviour{})(w)
		w.servers[0].Signal(syscall.SIGCONT)
	}()
}

// pausedThenDead: what was under way as the process was stopped has missed its answer.
// What came while it stood still, and afterwards, has not, until the webhooks are dead.
var pausedThenDead = []excuse{
	{causes: timedOutByUs, until: 500 * time.Millisecond},
	{causes: []history.Cause{history.Unreachable, history.TLS}, then: true, until: time.Second, cuts: true},
	{causes: []history.Cause{history.Unreachable, history.TLS}, then: true, from: time.Second, share: often},
	{causes: []history.Cause{history.BreakerOpen}, then: true, after: 3},
}

// slowNow makes a tenth of the answers come later than a process that stops stops
// accepting, so that there are calls under way when it does.
func slowNow(w *world) {
	behave(script.Behaviour{SlowBy: lameDuck + 500*time.Millisecond, SlowShare: 0.1})(w)
}

// Between two restarts, and two kills.
const (
	restartEvery = 500 * time.Millisecond
	killEvery    = time.Second
)

// sized is one number in smoke size, and another in full size.
func sized(smoke, whole int) int {
	if full {
		return whole
	}
	return smoke
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
