// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// effect is what an Outcome did to its admission.
type effect struct {
	result                        Result
	denies, failsOpen, shed, time bool
}

// What came of a call, under a failure policy and in a mode, is one thing wherever
// it is told.
func TestEffect(t *testing.T) {
	var (
		down   = &hook.CallError{Cause: hook.Timeout, Err: errors.New("late")}
		spared = &hook.CallError{Cause: hook.BreakerOpen, Err: errors.New("spared")}
		full   = &hook.CallError{Cause: hook.Shed, Err: errors.New("full")}
		patch  = refusePatch("does not apply")
		vague  = &codec.AnswerError{Reason: "neither yes nor no"}
		no     = &codec.AnswerError{Reason: "no, in the wrong words", Denies: true}
		says   = codec.Response{Code: 403}
	)
	for name, c := range map[string]struct {
		mode    chain.Mode
		policy  chain.FailurePolicy
		err     error
		allowed bool
		want    effect
	}{
		"allows":               {chain.Enforce, chain.Fail, nil, true, effect{Allowed, false, false, false, true}},
		"denies":               {chain.Enforce, chain.Fail, nil, false, effect{Denied, true, false, false, true}},
		"denies, Warn":         {chain.Warn, chain.Fail, nil, false, effect{Softened, false, false, false, true}},
		"fails":                {chain.Enforce, chain.Fail, down, false, effect{Failed, true, false, false, true}},
		"fails, Ignore":        {chain.Enforce, chain.Ignore, down, false, effect{FailedOpen, false, true, false, true}},
		"fails, Warn":          {chain.Warn, chain.Fail, down, false, effect{FailedOpen, false, true, false, true}},
		"fails, Warn, Ignore":  {chain.Warn, chain.Ignore, down, false, effect{FailedOpen, false, true, false, true}},
		"spared":               {chain.Enforce, chain.Fail, spared, false, effect{Failed, true, false, false, false}},
		"no place":             {chain.Enforce, chain.Fail, full, false, effect{Failed, true, false, true, false}},
		"no place, Ignore":     {chain.Enforce, chain.Ignore, full, false, effect{FailedOpen, false, true, true, false}},
		"no place, Warn":       {chain.Warn, chain.Fail, full, false, effect{FailedOpen, false, true, true, false}},
		"a bad answer":         {chain.Enforce, chain.Fail, vague, false, effect{Failed, true, false, false, true}},
		"a bad answer, Ignore": {chain.Enforce, chain.Ignore, vague, false, effect{FailedOpen, false, true, false, true}},
		"a bad denial, Ignore": {chain.Enforce, chain.Ignore, no, false, effect{Refused, true, false, false, true}},
		"an odd error, Ignore": {chain.Enforce, chain.Ignore, errors.New("odd"), false, effect{FailedOpen, false, true, false, true}},
		"a bad patch":          {chain.Enforce, chain.Ignore, patch, false, effect{Refused, true, false, false, true}},
		"a bad patch, Warn":    {chain.Warn, chain.Ignore, patch, false, effect{Softened, false, false, false, true}},
		"an undecidable match": {chain.Enforce, chain.Fail, refuseMatch(match.Decision{Err: errors.New("?")}), false, effect{Refused, true, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{Request: Request{Cluster: &chain.Cluster{}, Review: &codec.Review{}}}
			says.Allowed = c.allowed
			o := a.judge(&invocation{inquiry: inquiry{webhook: &chain.Entry{Mode: c.mode, FailurePolicy: c.policy}}}, says, c.err, 1)
			if got := (effect{o.Result, o.Denies(), o.FailsOpen(), o.Shed(), o.Timed()}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// What was not called, and what was given up on, tells nothing about time.
func TestEffectOfTheUncalled(t *testing.T) {
	for name, c := range map[string]struct {
		outcome Outcome
		want    effect
	}{
		"a condition that failed": {Outcome{Result: Skipped, Cause: hook.MatchError}, effect{Skipped, false, true, false, false}},
		"a dry run, Warn":         {Outcome{Result: Skipped, Cause: hook.DryRun}, effect{Skipped, false, false, false, false}},
		"given up on":             {Outcome{Result: Abandoned}, effect{result: Abandoned}},
	} {
		o := c.outcome
		if got := (effect{o.Result, o.Denies(), o.FailsOpen(), o.Shed(), o.Timed()}); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDecision(t *testing.T) {
	of := func(results ...Result) []Outcome {
		var all []Outcome
		for _, r := range results {
			all = append(all, Outcome{Result: r, Webhook: &chain.Entry{}, Err: errors.New("because")})
		}
		return all
	}
	for want, verdicts := range map[Decision][]Verdict{
		DecisionAllowed:    {merge(&admission{}), merge(&admission{outcomes: of(Allowed, Softened)})},
		DecisionFailedOpen: {merge(&admission{outcomes: of(Allowed, FailedOpen)})},
		DecisionBypassed:   {bypassed("rule", "snapshot")},
		DecisionDenied:     {merge(&admission{outcomes: of(Failed, Refused, Denied, FailedOpen)})},
		DecisionRefused:    {merge(&admission{outcomes: of(Failed, Refused)})},
		DecisionFailed:     {merge(&admission{outcomes: of(FailedOpen, Failed, Abandoned)})},
		DecisionUnreadable: {unreadable(Defect{Code: 400})},
		DecisionPanicked:   {panicked()},
	} {
		for i := range verdicts {
			if got := verdicts[i].Decision(); got != want {
				t.Errorf("%+v is %s, want %s", verdicts[i].Outcomes, got, want)
			}
		}
	}
}
