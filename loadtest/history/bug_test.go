// SPDX-License-Identifier: Apache-2.0

package history

// bug is something that a dispatcher may do wrong.
type bug int

const (
	none bug = iota
	allowOnTimeout
	denialBecomesAllow
	uidUnchecked
	foreignUID
	losersAnswer
	staleSnapshot
	mixedSnapshots
	wrongRoute
	patchesSwapped
	patchOfFailed
	bypassAsks
	bypassLeaks
	breakerCountsDenials
	bodyReused
	mutedWarnings
	mutedAnnotations
	retriesEffects
	dryRunAsks
	hedgesTooMuch
	asksAfterAnswer
	lateAnswer
	longGrace
	wrongHeader
	deafGrace
	firstDenialOnly
	denialsSwapped
	wrongName
	ignoreCloses
	failOpens
	warnEnforced
	shadowCounts
	droppedCall
	lastCode
	chainGoesOn
	shedsAnybody
	deniesForNothing
	inventsFailure
	noRecovery
	opensAtOnce
	outlastsCaller
	bugs // how many
)

// seeded says what each bug is, and which rule is there for it.
var seeded = [bugs]struct {
	what string
	rule Rule
}{
	none:                 {what: "none"},
	allowOnTimeout:       {"allow on timeout", WrongAllow},
	denialBecomesAllow:   {"denial becomes an allow", WrongAllow},
	uidUnchecked:         {"uid of answers not checked", WrongAllow},
	foreignUID:           {"answered with another uid", ForeignUID},
	losersAnswer:         {"loser's answer used", ForeignAnswer},
	staleSnapshot:        {"stale Snapshot", OneSnapshot},
	mixedSnapshots:       {"Snapshots mixed", OneSnapshot},
	wrongRoute:           {"other clusters' webhooks", Misrouted},
	patchesSwapped:       {"patch order swapped", Patch},
	patchOfFailed:        {"patch of a failed webhook", Patch},
	bypassAsks:           {"bypass asks webhooks", Bypass},
	bypassLeaks:          {"bypass leaks", WrongAllow},
	breakerCountsDenials: {"breaker counts denials", BreakerOpened},
	bodyReused:           {"body reused too early", ForeignBody},
	mutedWarnings:        {"fail-open without warning", SilentFailOpen},
	mutedAnnotations:     {"fail-open not annotated", SilentFailOpen},
	retriesEffects:       {"retry with side effects", AskedTwice},
	dryRunAsks:           {"dry run with side effects", AskedTwice},
	hedgesTooMuch:        {"hedges over budget", ExtraAttempts},
	asksAfterAnswer:      {"hedge after the answer", AfterAnswer},
	lateAnswer:           {"late answer", LateAnswer},
	longGrace:            {"grace too long", LateAnswer},
	wrongHeader:          {"wrong cluster header", ForeignCluster},
	deafGrace:            {"denial lost in the grace", LostDenial},
	firstDenialOnly:      {"first denial only", LostDenial},
	denialsSwapped:       {"denials out of order", FirstCode},
	wrongName:            {"denial of the wrong webhook", Attribution},
	ignoreCloses:         {"Ignore fails closed", FailurePolicy},
	failOpens:            {"Fail fails open", FailurePolicy},
	warnEnforced:         {"Warn mode denies", ModeEnforced},
	shadowCounts:         {"Shadow mode denies", ModeEnforced},
	droppedCall:          {"dropped call", LostCall},
	lastCode:             {"code of the last denial", FirstCode},
	shedsAnybody:         {"sheds without overload", WrongDeny},
	deniesForNothing:     {"denial of somebody who allows", WrongDeny},
	inventsFailure:       {"failure without a fault", FalseFailure},
	noRecovery:           {"more failures than faults", FailureShare},
	opensAtOnce:          {"breaker opens at once", BreakerOpened},
	outlastsCaller:       {"answer after the caller gave up", LateAnswer},
	chainGoesOn:          {"chain goes on after denial", ChainBroken},
}

func (b bug) String() string { return seeded[b].what }

func (b bug) rule() Rule { return seeded[b].rule }
