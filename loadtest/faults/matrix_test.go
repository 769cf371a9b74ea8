// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// Causes that rows share.
var (
	// One that is cut in its handshake has failed in TLS.
	unreachable = []history.Cause{history.Unreachable, history.TLS, history.BreakerOpen}
	timedOut    = []history.Cause{history.Timeout, history.BreakerOpen}
	// Connections that are there when the fault is set are reset.
	timedOutOrCut = []history.Cause{history.Timeout, history.Unreachable, history.TLS, history.BreakerOpen}
)

// callers is how long the callers of webhooks that hang have.
var callers = time.Duration(sized(3, 10)) * time.Second

// Shares of the calls that try whether an open circuit may close: of each cluster one
// at a time, ten a second at most.
const (
	often  = 0.7 // where they fail at once
	rarely = 0.3 // where each takes a second
)

// until is a fault that makes calls fail with some causes until the circuit is open,
// at the latest at a time after the fault: then only those fail so that try whether it
// may close. It does not open before three calls have failed.
func until(open time.Duration, tries float64, causes ...history.Cause) []excuse {
	return []excuse{
		{causes: causes, until: time.Millisecond, cuts: true}, // connections are reset as it is set
		{causes: causes, until: open},
		{causes: causes, from: open, share: tries},
		{causes: []history.Cause{history.BreakerOpen}, after: 3},
	}
}

// failing is a fault that makes calls fail with some causes, after so many of which
// the circuit may open.
func failing(after int, causes ...history.Cause) []excuse {
	return []excuse{{causes: causes}, {causes: []history.Cause{history.BreakerOpen}, after: after}}
}

// perProcess is what the budgets of the processes that live one after the other in
// ten seconds come to: each has a burst of its own.
const perProcess = 70

// quickBreaker tries again soon, so that a row need not last a minute.
const quickBreaker = "  breaker: {openTime: 200ms}\n"

// all sets a fault before every Endpoint of the hurt webhooks.
func all(f proxy.Fault) func(*world) {
	return func(w *world) {
		for _, e := range w.hurt {
			w.must(e.proxy.Set(f))
		}
	}
}

// first sets a fault before one of them.
func first(f proxy.Fault) func(*world) { return func(w *world) { w.must(w.hurt[0].proxy.Set(f)) } }

// behave makes the hurt webhooks answer so.
func behave(b script.Behaviour) func(*world) {
	return func(w *world) {
		for _, e := range w.hurt {
			e.Behave(hurtFail, b)
			e.Behave(hurtIgnore, b)
		}
	}
}

var matrix = []row{
	{id: "F1", what: "connection refused, every Endpoint", servers: 2, during: 2500 * time.Millisecond, fault: all(proxy.Fault{Refuse: true, Sever: true}),
		excuses: until(time.Second, often, history.Unreachable, history.TLS), within: 20 * time.Millisecond, opens: time.Second, then: 5 * time.Millisecond},
	{id: "F2", what: "one of three Endpoints refused", servers: 3, fault: first(proxy.Fault{Refuse: true, Sever: true}), within: 5 * time.Millisecond},
	{id: "F3", what: "SYN into a black hole, every Endpoint", timeout: 3, during: 3500 * time.Millisecond, fault: all(proxy.Fault{BlackHole: true, Sever: true}),
		excuses: until(2*time.Second, rarely, history.Timeout, history.Unreachable, history.TLS), within: time.Second, opens: 2 * time.Second, then: 5 * time.Millisecond},
	{id: "F4", what: "one of three black-holed", servers: 3, timeout: 3, during: 3500 * time.Millisecond, fault: first(proxy.Fault{BlackHole: true, Sever: true}), within: time.Second},
	{id: "F5", what: "accepts and is silent", during: 3500 * time.Millisecond, fault: all(proxy.Fault{Silent: true, Sever: true}),
		excuses: until(2*time.Second, rarely, history.Timeout, history.Unreachable, history.TLS), within: time.Second, check: noLeak},
	{id: "F6", what: "certificate", excuses: until(time.Second, often, history.TLS, history.Unreachable), within: 30 * time.Millisecond, check: nothingArrived,
		variants: []variant{
			{"expired", func(r *row) { r.fault = present(expired) }},
			{"other-authority", func(r *row) { r.fault = present(ofAnotherAuthority) }},
			{"wrong-name", func(r *row) { r.fault = present(ofAnotherName) }},
		}},
	{id: "F7", what: "answers after its timeout", fault: behave(script.Behaviour{Delay: 2500 * time.Millisecond}),
		excuses: failing(10, history.Timeout), within: time.Second},
	{id: "F8", what: "1 % of calls +100 ms", servers: 2, rate: 60, during: 4 * time.Second,
		fault: behave(script.Behaviour{SlowBy: 100 * time.Millisecond, SlowShare: 0.01})},
	{id: "F9", what: "all calls suddenly +200 ms", servers: 2, fault: behave(script.Behaviour{Delay: 200 * time.Millisecond}), within: 200 * time.Millisecond},
	{id: "F10", what: "webhook at its capacity", servers: 2, rate: 60, fault: saturate, within: time.Second},
	{id: "F11", what: "hangs on one resource only", fault: behave(script.Behaviour{HangOn: "deployments"}), resources: []load.Resource{load.Pods, deployments, load.Pods},
		causes: timedOut, resource: []string{"deployments"}, within: time.Second},
	{id: "F12", what: "RST after the request, on 3 % of them", servers: 2, fault: all(proxy.Fault{ResetAtRequest: 1, Share: 0.03, Seed: seed}),
		causes: unreachable, share: 0.02, within: 20 * time.Millisecond},
	{id: "F13", what: "RST after the request, side effects", effects: true, fault: all(proxy.Fault{ResetAtRequest: 1, Share: 0.2, Seed: seed}),
		causes: unreachable, cuts: true, within: 20 * time.Millisecond},
	{id: "F14", what: "idle connection closed as it is reused", rate: 20, fault: all(proxy.Fault{CloseIdle: true, Share: 0.2, Seed: seed})},
	{id: "F15", what: "cut, huge, many headers, 1xx, trickle", fault: nasty, during: 4 * time.Second,
		causes: append([]history.Cause{history.BadAnswer, history.HTTPStatus}, timedOutOrCut...), within: time.Second, check: smallMemory},
	{id: "F16", what: "307 to another host", fault: behave(script.Behaviour{Form: script.Redirect}), excuses: failing(10, history.HTTPStatus), check: noStrays},
	{id: "F17", what: "statuses 400 to 504, persuasive bodies", fault: behave(script.Behaviour{Form: script.Persuasive, Statuses: statuses}), during: 3 * time.Second,
		excuses: failing(10, history.HTTPStatus), within: 20 * time.Millisecond,
		variants: []variant{
			{"each", func(r *row) { r.binding, r.check = "  breaker: {enabled: false}\n", everyStatus }},
			{"open", func(r *row) { r.fault = behave(script.Behaviour{Form: script.Persuasive, Statuses: serverErrors}) }},
		}},
	{id: "F18", what: "flapping", binding: quickBreaker, during: 4 * time.Second,
		fault:  all(proxy.Fault{Refuse: true, Sever: true, Flap: proxy.Flap{Up: 500 * time.Millisecond, Down: 500 * time.Millisecond}}),
		causes: unreachable, cuts: true, within: 20 * time.Millisecond},
	{id: "F19", what: "recovers", servers: 2, binding: quickBreaker, fault: all(proxy.Fault{Refuse: true, Sever: true}), repair: all(proxy.Fault{}),
		causes: unreachable, settle: 3 * time.Second, after: 5 * time.Second, check: recovered},
	{id: "F20", what: "the half-open probe hangs", binding: quickBreaker, fault: behave(script.Behaviour{Hang: true}), during: 4 * time.Second,
		causes: timedOut, within: time.Second, check: fewWait},
	{id: "F21", what: "hedge twin: error, then the truth", servers: 2, rate: 10, fault: unequalTwins,
		causes: []history.Cause{history.HTTPStatus, history.BadAnswer, history.BreakerOpen}, check: twinsAreHeard},
	{id: "F22", what: "mutating, webhook 2 of 4 dead", phases: []history.Phase{history.Mutating}, fault: all(proxy.Fault{Refuse: true, Sever: true}),
		excuses: failing(2, history.Unreachable, history.TLS), variants: []variant{
			{"Fail", func(r *row) { r.hooks = chainOfFour(hurtFail, history.Fail) }},
			{"Ignore", func(r *row) { r.hooks = chainOfFour(hurtIgnore, history.Ignore) }},
		}},
	{id: "F23", what: "mutating: no time left for the next", rate: 10, caller: time.Second, phases: []history.Phase{history.Mutating}, hooks: patient,
		binding: "  breaker: {enabled: false}\n", fault: func(w *world) { w.hurt[0].Behave("", script.Behaviour{Hang: true}) },
		causes: []history.Cause{history.Timeout, history.NoTimeLeft}, within: time.Second, check: lastIsNotAsked},
	{id: "F24", what: "DNS dead, NXDOMAIN, slow, rebinding", named: true, fault: loseNames, repair: func(w *world) { w.names.Set(home) },
		during: 4500 * time.Millisecond, after: time.Second, within: 100 * time.Millisecond, check: namesAreRare},
	{id: "F25", what: "8 webhooks hang", timeout: 10, rate: 10, caller: callers, hooks: eight,
		fault: func(w *world) { w.hurt[0].Behave("", script.Behaviour{Hang: true}) }, causes: append([]history.Cause{history.NoTimeLeft}, timedOut...), within: callers},
	{id: "F26", what: "callers disconnect", rate: 20, fault: disconnect, check: noLeak},
	{id: "F27", what: "one cluster at 20 times its share", rate: 10, weights: map[string]float64{"east": 20},
		process: "limits: {admissions: 16, admissionsPerCluster: 8}\n", fault: slowWell, sheds: "east", check: onlyEastIsShed},
	{id: "F28", what: "500 idle connections from strangers", process: "timeouts: {headers: 1s}\n", fault: strangers(500), within: 100 * time.Millisecond},
	{id: "F29", what: "certificates replaced all the time", fault: replaceCertificates(sized(20, 1000)), during: lasting(replaceEvery, sized(20, 1000)), snapshots: true},
	{id: "F30", what: "configuration corrupt, truncated, gone", fault: corrupt, during: 3 * time.Second, check: refusedButServing},
	{id: "F31", what: "telemetry collector hangs, log sink blocked", traced: true, fault: blockLog, repair: readLog,
		during: 4 * time.Second, after: 2 * time.Second, within: 100 * time.Millisecond, check: logIsWhole},
	{id: "F32", what: "descriptor limit 256 reached", descriptors: 256, fault: strangers(500), repair: nothing, losses: true, after: 5 * time.Second,
		causes: append([]history.Cause{history.Shed}, unreachable...), settle: 6 * time.Second, check: servesInTheEnd},
	{id: "F33", what: "SIGSTOP for 2 s", fault: stopAndContinue, during: 3 * time.Second, after: 2 * time.Second, causes: timedOutOrCut, pause: 2 * time.Second, check: noBreakerOpened},
	{id: "F34", what: "SIGTERM rolling restart, successor up", fault: rollingRestarts(sized(3, 200)), during: lasting(restartEvery, sized(3, 200)), bunch: perProcess},
	{id: "F35", what: "kill -9 with two replicas", fault: kills(sized(3, 200)), during: lasting(killEvery, sized(3, 200)), bunch: perProcess, losses: true, check: fewLost},
	{id: "F36", what: "reloads, some of them invalid", process: "reloadInterval: 50ms\n", rate: float64(sized(30, 100)),
		fault: reloads(sized(80, 10_000)), during: lasting(reloadEvery, sized(80, 10_000)), snapshots: true},
	{id: "F37", what: "leases, heartbeats, auth reviews", amid: []string{"F1", "F3", "F25", "F27"}, within: 10 * time.Millisecond},
	{id: "F38", what: "panic inside one webhook's call path", skip: "nothing outside can cause one: TestStories/validate_panic in package dispatcher"},
}
