// SPDX-License-Identifier: Apache-2.0

package history

import "slices"

// allowed: everybody who has a part said yes, or has an excuse that is shown.
func (t *trial) allowed() {
	for i := range t.parts {
		t.passed(&t.parts[i])
	}
}

// passed holds one webhook that did not deny against what is said about it.
func (t *trial) passed(p *part) {
	if cl, ok := t.said.about(p.webhook.Name); ok {
		t.excused(p, cl)
		return
	}
	w := p.webhook
	switch {
	case p.must || !p.asked:
		t.unannounced(p)
	case p.truth.denies() && w.Mode == Enforce:
		t.report(WrongAllow, "%s denies: %s", w.Name, p.truth.Message)
	case p.truth.denies():
		t.report(SilentFailOpen, "%s denies in Warn mode, and no warning says so", w.Name)
	}
}

// unannounced reports a webhook that did not say yes: as an allow that is wrong
// where it counts, as silence where all that is missing is a word about it.
func (t *trial) unannounced(p *part) {
	w := p.webhook
	rule := WrongAllow
	if w.Mode == Warn || (w.ignores(t.c) && !p.refused) {
		rule = SilentFailOpen
	}
	t.report(rule, "%s gave no usable answer, and nothing is said about it", w.Name)
}

// excused holds what is said about a webhook that did not deny against what may
// have happened.
func (t *trial) excused(p *part, cl claim) {
	w := p.webhook
	switch cl.kind {
	case saidFailedOpen:
		if !w.ignores(t.c) {
			t.report(FailurePolicy, "%s fails closed, and was ignored (%s)", w.Name, cl.cause)
		}
		if p.refused && !slices.Contains(p.excuses, cl.cause) {
			t.report(FailurePolicy, "%s must be refused whatever its failure policy, and was ignored", w.Name)
		}
		t.failed(p, cl.cause)
	case saidSoftened:
		t.softened(p, cl)
	case saidSkipped:
		if !slices.Contains(p.causes, cl.cause) {
			t.report(FalseFailure, "%s was skipped (%s) for no reason", w.Name, cl.cause)
		}
	}
}

// softened: only Warn mode makes a warning of a denial, and only of a denial.
func (t *trial) softened(p *part, cl claim) {
	switch {
	case p.webhook.Mode != Warn:
		t.report(WrongAllow, "%s is enforced, and its denial became a warning", p.webhook.Name)
	case cl.cause != "":
		t.failed(p, cl.cause)
	case cl.text != "" && !p.truth.denies():
		t.report(WrongDeny, "%s allows, and a warning says that it would deny", p.webhook.Name)
	}
}

// failed: a failure needs an excuse, and there was no answer in time.
func (t *trial) failed(p *part, cause Cause) {
	name := p.webhook.Name
	switch {
	case !slices.Contains(p.causes, cause) && cause == BreakerOpen:
		t.report(BreakerOpened, "no fault excuses the open breaker of %s", name)
	case !slices.Contains(p.causes, cause):
		t.report(FalseFailure, "no fault excuses that %s failed (%s)", name, cause)
	case !p.heard:
	case p.truth.denies() && t.c.Allowed:
		t.report(WrongAllow, "%s denied in time, and is said to have failed (%s)", name, cause)
	case p.truth.denies():
		t.report(LostDenial, "%s denied in time, and is said to have failed (%s)", name, cause)
	default:
		t.report(FalseFailure, "%s answered in time, and is said to have failed (%s)", name, cause)
	}
}
