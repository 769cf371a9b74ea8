// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
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
	// With a dispatcher that stands still: it opens no circuit for that.
	timedOutByUs = []history.Cause{history.Timeout, history.NoTimeLeft, history.Unreachable, history.TLS}
)

// callers is how long the callers of webhooks that hang have.
var callers = time.Duration(sized(3, 10)) * time.Second

// Shares of the calls that try whether an open circuit may close: of each cluster one
// at a time, ten a second at most.
const (
	often     = 0.7 // where they fail at once
	sometimes = 0.5 // and where other webhooks deny before
	rarely    = 0.3 // where each takes a second
)

// resetTwice is the share of the calls whose retry is reset, too, or for which the budget
// has no extra attempt.
const resetTwice = 0.005

// redials is how many attempts in the window of the budget are free, because a connection
// that had been used was reset before any byte of an answer.
const redials = 15

// Times after the fault at which a circuit is open that ten failures in a row open:
// failures at once, and those after a second.
const (
	openAfter     = 1500 * time.Millisecond
	openAfterSlow = 2 * time.Second
)

// until is a fault that makes calls fail with some causes until the circuit is open,
// at the latest at a time after the fault: then only those fail so that try whether it
// may close. It does not open before three calls have failed.
func until(open time.Duration, tries float64, causes ...history.Cause) []excuse {
	cut := excuse{causes: causes, until: time.Millisecond, cuts: true} // connections are reset as it is set
	return append(opening(3, open, tries, causes...), cut)
}

// opening is the same for a fault that resets no connections, with so many failures
// before which the circuit does not open.
func opening(after int, open time.Duration, tries float64, causes ...history.Cause) []excuse {
	return []excuse{
		{causes: causes, until: open},
		{causes: causes, from: open, share: tries},
		{causes: []history.Cause{history.BreakerOpen}, after: after},
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

// patientConnect is for rows that are not about connections: on a busy machine the
// handshake of one takes longer than webhooks may have for it.
const patientConnect = "timeouts: {connect: 5s}\n"

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
	{id: "F7", what: "answers after its timeout", during: 3500 * time.Millisecond, fault: behave(script.Behaviour{Delay: 2500 * time.Millisecond}),
		excuses: opening(10, openAfterSlow, rarely, history.Timeout), within: time.Second},
	besideNoHedging(row{id: "F8", what: "1 % of calls +100 ms", servers: 2, rate: 60, hooks: willing(), during: time.Duration(sized(6, 60)) * time.Second,
		fault: behave(script.Behaviour{SlowBy: slowBy, SlowShare: slowShare})}, cutsTheTail),
	{id: "F9", what: "all calls suddenly +200 ms", servers: 2, fault: behave(script.Behaviour{Delay: 200 * time.Millisecond}), within: 200 * time.Millisecond, check: someHedges},
	besideNoHedging(row{id: "F10", what: "webhook at 70, 90, 105 % of its capacity", servers: 2, hooks: pressed(), rate: capacityRate, during: nearCapacity,
		begin: loadedTo(percents[0]), fault: fuller, excuses: overfull}, sameGoodput),
	{id: "F11", what: "hangs on one resource only", rate: 50, during: 4 * time.Second, fault: behave(script.Behaviour{HangOn: deployments.Resource}),
		resources: []load.Resource{load.Pods, deployments, deployments}, resource: []string{deployments.Resource}, excuses: opening(10, openAfterSlow, rarely, history.Timeout),
		within: time.Second, check: sparedOnOne},
	{id: "F12", what: "RST before and after the request", process: patientConnect, timeout: 5, servers: 2, rate: 60, during: 3 * time.Second,
		begin: byteByByte, fault: inTurn(500*time.Millisecond, first, proxy.Fault{ResetAtRequest: 1, Share: 0.08, Seed: seed}, proxy.Fault{ResetAtResponse: 1, Share: 0.08, Seed: seed}),
		excuses: []excuse{{causes: []history.Cause{history.Unreachable}, share: resetTwice, cuts: true}}, bunch: redials, within: 20 * time.Millisecond, check: eachHitAtLeast(5)},
	{id: "F13", what: "RST, or FIN, after the request, side effects", process: patientConnect, timeout: 5, effects: true, rate: 60,
		begin: byteByByte, fault: inTurn(500*time.Millisecond, all, proxy.Fault{ResetAtResponse: 1, Share: 0.2, Seed: seed}, proxy.Fault{HalfClose: true, Share: 0.2, Seed: seed}),
		excuses: []excuse{{causes: []history.Cause{history.Unreachable, history.TLS}, share: 0.3, cuts: true}}, within: 20 * time.Millisecond, check: askedOnce},
	{id: "F14", what: "idle connection closed as it is reused", process: patientConnect, timeout: 5, rate: 60, begin: byteByByte, fault: all(proxy.Fault{CloseIdle: true, Share: 0.4, Seed: seed}), check: hitAtLeast(60)},
	{id: "F15", what: "cut, huge, many headers, 1xx, trickle", process: patientConnect, timeout: 3, rate: 10, fault: nasty, during: time.Duration(len(nastyForms)) * nastyEvery,
		binding: "  breaker: {enabled: false}\n", memory: 256 << 20, excuses: nastyExcuses, within: 3 * time.Second, check: everyForm},
	{id: "F16", what: "307 to another host", during: 3500 * time.Millisecond, fault: behave(script.Behaviour{Form: script.Redirect}),
		excuses: opening(10, openAfter, often, history.HTTPStatus), check: noStrays},
	{id: "F17", what: "statuses 400 to 504, persuasive bodies", fault: behave(script.Behaviour{Form: script.Persuasive, Statuses: statuses}), during: 3 * time.Second,
		excuses: []excuse{{causes: []history.Cause{history.HTTPStatus}}}, within: 20 * time.Millisecond,
		variants: []variant{
			{"each", func(r *row) { r.binding, r.check = "  breaker: {enabled: false}\n", everyStatus }},
			{"open", func(r *row) {
				r.fault = behave(script.Behaviour{Form: script.Persuasive, Statuses: serverErrors})
				r.excuses = opening(10, openAfter, often, history.HTTPStatus)
			}},
		}},
	{id: "F18", what: "flapping 1 s up, 1 s down", variants: []variant{
		{"every-Endpoint", flappingWhole}, {"one-of-two", flappingHalf},
	}},
	{id: "F19", what: "recovers", binding: quickBreaker, before: 500 * time.Millisecond, settle: 2 * time.Second, variants: []variant{
		{"refused", func(r *row) {
			r.servers, r.fault, r.repair = 2, all(proxy.Fault{Refuse: true, Sever: true}), all(proxy.Fault{})
			r.excuses, r.after, r.check = until(time.Second, often, history.Unreachable, history.TLS), 4*time.Second, trueWithinASecond
		}},
		{"errors", func(r *row) {
			r.hooks, r.rate, r.begin, r.fault, r.repair = willing(), 80, behave(slowAnswer), behave(script.Behaviour{Form: script.Persuasive}), behave(slowAnswer)
			r.excuses, r.after, r.check = failing(10, history.HTTPStatus), 3*time.Second, allOf(trueWithinASecond, isRamped)
		}},
	}},
	{id: "F20", what: "the half-open probe hangs", rate: 50, binding: quickBreaker, fault: behave(script.Behaviour{Hang: true}), during: 4500 * time.Millisecond,
		excuses: opening(10, openAfterSlow, rarely, history.Timeout), within: time.Second, check: allOf(fewWait, othersAreRefusedAtOnce, probedAgain)},
	{id: "F21", what: "hedge twin: error, then deny; malformed, then allow", servers: 2, rate: 60, phases: []history.Phase{history.Validating, history.Mutating}, hooks: twins,
		during: 3500 * time.Millisecond, fault: unequalTwins, excuses: oneTwinOpen, check: twinsAreHeard},
	{id: "F22", what: "mutating, webhook 2 of 4 dead", phases: []history.Phase{history.Mutating}, fault: all(proxy.Fault{Refuse: true, Sever: true}),
		during: 3500 * time.Millisecond, excuses: until(time.Second, sometimes, history.Unreachable, history.TLS), variants: []variant{
			{"Fail", func(r *row) { r.hooks = chainOfFour(hurtFail, history.Fail) }},
			{"Ignore", func(r *row) { r.hooks = chainOfFour(hurtIgnore, history.Ignore) }},
		}},
	{id: "F23", what: "mutating: no time left for the next", rate: 10, caller: time.Second, phases: []history.Phase{history.Mutating}, hooks: patient,
		binding: "  breaker: {enabled: false}\n", fault: func(w *world) { w.hurt[0].Behave("", script.Behaviour{Hang: true}) },
		excuses: []excuse{{causes: []history.Cause{history.Timeout, history.NoTimeLeft}}}, within: time.Second, check: lastIsNotAsked},
	{id: "F24", what: "DNS dead, NXDOMAIN, slow, rebinding", process: patientConnect, timeout: 5, named: true, hooks: oneByName(), fault: loseNames, repair: moveHome,
		during: zoneLasts * time.Duration(len(lostZones)), after: 2 * time.Second, within: 100 * time.Millisecond, check: allOf(everyZone, namesAreRare)},
	{id: "F25", what: "8 webhooks hang", timeout: 10, rate: 10, caller: callers, hooks: eight(history.Fail),
		fault: func(w *world) { w.hurt[0].Behave("", script.Behaviour{Hang: true}) }, excuses: failing(10, history.Timeout), within: callers,
		variants: []variant{
			{"Fail", func(*row) {}},
			{"Ignore", func(r *row) { r.hooks = eight(history.Ignore) }},
		}},
	{id: "F26", what: "callers disconnect", rate: 10, hooks: hooksToAbort(), binding: "  breaker: {enabled: false}\n",
		process: "limits: {callsPerEndpoint: 64}\n" + patientConnect, fault: letHang, attack: abort(24), during: 3 * time.Second, after: abortedTimeout + 500*time.Millisecond, check: allReturned},
	{id: "F27", what: "one cluster at 20 times its share", timeout: 5, rate: 10, surge: 190, during: 4 * time.Second, begin: slowWell,
		process: "limits: {admissions: 32, admissionsPerCluster: 8}\n", fault: nothing, sheds: "east", compares: true, check: onlyEastIsShed},
	{id: "F28", what: "500 connections of strangers, idle or half open", timeout: 5, process: fmt.Sprintf("timeouts: {headers: %v, connect: 5s}\n", strangersHave), fault: strangers(500),
		during: 3 * time.Second, within: 100 * time.Millisecond, check: strangersLeft(500)},
	{id: "F29", what: "certificates replaced all the time", servers: 2, binding: "  clientCertificate: {certFile: ../client.crt, keyFile: ../client.key}\n",
		process: "limits: {connectionAge: 500ms}\n" + patientConnect, begin: renewable, drive: renewals(sized(20, 1000)), check: renewed(sized(20, 1000))},
	{id: "F30", what: "configuration corrupt, truncated, gone, empty", process: patientConnect, timeout: 5, drive: corrupt},
	{id: "F31", what: "telemetry collector dead, log sink blocked", process: patientConnect, timeout: 5, traced: true, rate: 40, fault: blockLog, repair: readLog,
		during: 4 * time.Second, after: 2 * time.Second, within: 100 * time.Millisecond, check: logIsWhole, variants: []variant{
			{"hangs", func(*row) {}},
			{"refuses", func(r *row) { r.refuses = true }},
		}},
	{id: "F32", what: "descriptor limit 256 reached", process: patientConnect, timeout: 5, descriptors: 256, fault: besieged(500), during: 9 * time.Second,
		losses: true, excuses: []excuse{{causes: append([]history.Cause{history.Shed}, unreachable...), cuts: true}}, recovers: recovered, check: servesInTheEnd},
	{id: "F33", what: "SIGSTOP for 2 s, then dead webhooks", rate: 36, binding: "  breaker: {openTime: 200ms, failurePercent: 4, minRequests: 4}\n",
		begin: behave(script.Behaviour{Delay: 600 * time.Millisecond}), fault: stopAndContinue, during: 3500 * time.Millisecond, pause: 2 * time.Second,
		repair: all(proxy.Fault{Refuse: true, Sever: true}), after: 2 * time.Second, excuses: pausedThenDead, check: onlyTheDeadOpen},
	{id: "F34", what: "SIGTERM rolling restart, successor up", process: patientConnect, timeout: 5, begin: slowNow, drive: rollingRestarts(sized(3, 200)), bunch: perProcess},
	{id: "F35", what: "kill -9 with two replicas", process: patientConnect, timeout: 5, drive: kills(sized(3, 200)), bunch: perProcess, losses: true, check: fewLost(sized(3, 200))},
	{id: "F36", what: "reloads, some of them invalid", process: fmt.Sprintf("reloadInterval: %v\n", reloadInterval) + patientConnect, rate: float64(sized(40, 333)), hooks: hooksOf(0),
		drive: reloads(sized(80, 10_000)), snapshots: generationsSeen, check: effective(sized(80, 10_000))},
	{id: "F37", what: "leases, heartbeats, auth reviews", amid: []string{"F1", "F3", "F25", "F27"}, within: 10 * time.Millisecond},
	{id: "F38", what: "panic inside one webhook's call path", before: time.Millisecond, excuses: []excuse{{causes: []history.Cause{history.Panic}}}, variants: []variant{
		{"asking", func(r *row) { r.injected = panicking("webhook/hook.go", "	call, err := h.call(&q)\n", "h.ID") }},
		{"attempt", func(r *row) { r.injected = panicking("transport/exchange.go", "	if t.reader == nil {\n", "r.Owner") }},
	}},
	{id: "F39", what: "a plugin that panics", before: time.Millisecond, injected: inPlugin(`panic("injected")`), inside: decided("AlwaysAdmit"),
		excuses: []excuse{{causes: []history.Cause{history.Panic}}}, objects: fmt.Sprintf(pluginObject, "2s")},
	{id: "F40", what: "a plugin that hangs", before: time.Millisecond, during: 4 * time.Second, injected: inPlugin("<-make(chan struct{})"), inside: decided("AlwaysAdmit"),
		excuses: []excuse{{causes: []history.Cause{history.Timeout, history.Shed}}}, objects: fmt.Sprintf(pluginObject, "200ms"), check: hangsInFew},
	{id: "F41", what: "an expression that exceeds its cost", before: time.Millisecond, inside: decided("costly"),
		excuses: []excuse{{causes: []history.Cause{history.Evaluation}}}, objects: costlyPolicy},
	{id: "F42", what: "objects that are not synced", apis: unlisted, resources: manyNamespaces, process: limitsOfWaiting, rate: 15, surge: 100, during: 4 * time.Second, sheds: "east",
		compares: true, excuses: unanswered, variants: []variant{
			{"params-hang", func(r *row) {
				r.objects, r.inside, r.fault, r.check = limitedPolicy, answering("limited"), apiOfEast(hangs), onlyEastWaits("limited", apiWaits)
			}},
			{"params-refused", func(r *row) {
				r.objects, r.inside, r.fault, r.check = limitedPolicy, answering("limited"), apiOfEast(refuses), onlyEastWaits("limited", apiWaits)
			}},
			{"params-listed-endlessly", func(r *row) { // each is asked for, and there
				r.apis, r.surge, r.sheds, r.excuses = unending, 0, "", nil
				r.objects, r.inside, r.fault, r.check = limitedPolicy, answering("limited"), nothing, othersGoOn
			}},
			{"plugin-hangs", func(r *row) {
				r.objects, r.inside, r.fault, r.check = limitsObject, answering("LimitRanger"), apiOfEast(hangs), onlyEastWaits("LimitRanger", apiWaits)
			}},
		}},
	{id: "F43", what: "a SubjectAccessReview that hangs", apis: unlisted, process: limitsOfWaiting, caller: 2 * time.Second, rate: 15, surge: 100, during: 4 * time.Second, sheds: "east",
		compares: true, excuses: unanswered, objects: askingPolicy, inside: answering("asking"), fault: apiOfEast(hangs), check: onlyEastWaits("asking", apiWaits)},
	{id: "F44", what: "OpenAPI documents that are not read", apis: listed, resources: widgetsOf("shop.example.com"), surges: newKinds, phases: []history.Phase{history.Mutating},
		process: limitsOfWaiting, caller: 2 * time.Second, rate: 15, surge: 100, during: 4 * time.Second, sheds: "east", compares: true, excuses: unanswered, objects: mergingPolicy, inside: mutating("merging"), variants: []variant{
			{"hang", func(r *row) {
				r.fault, r.repair, r.check = apiOfEast(hangs), apiOfEast(nil), allOf(onlyEastWaits("merging", apiWaits), knownKindsStay, kindsAreReadAgain)
			}},
			{"endless", func(r *row) {
				r.fault, r.check = apiOfEast(withoutEnd), allOf(othersGoOn, knownKindsStay, onlyAtFirst)
			}},
		}},
}

// apiWaits is how long a call that is ignored when it fails waits for a cluster.
const apiWaits = 500 * time.Millisecond

// panicking panics before a statement for each webhook that is hurt.
func panicking(file, statement, id string) *mutant {
	return &mutant{file: file, old: statement, new: fmt.Sprintf("	if %s.Name != %q {\n		panic(\"injected\")\n	}\n%s", id, well, statement)}
}
