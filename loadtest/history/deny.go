// SPDX-License-Identifier: Apache-2.0

package history

import (
	"net/http"
	"slices"
)

// denied: everybody who is named may say no, and nobody who did is missing.
func (t *trial) denied() {
	if len(t.said.lines) == 0 {
		t.unreasoned()
		return
	}
	for _, line := range t.said.obscure {
		t.report(Attribution, "the line %q names nobody", line)
	}
	for _, cl := range t.said.lines {
		if p := t.part(cl.webhook); p != nil {
			t.denier(p, cl)
		}
	}
	if listed := t.c.listed(deniedAnnotation); !sameNames(listed, names(t.said.lines)) && !t.c.cut(deniedAnnotation) {
		t.report(Attribution, "the message names %q, the annotation %q", names(t.said.lines), listed)
	}
	t.missing()
	t.ordered()
	t.others()
}

// unreasoned is a denial that names nobody: load may be shed like that.
func (t *trial) unreasoned() {
	shed := slices.ContainsFunc(t.m.world.Sheds, func(s Span) bool { return s.covers(t.c) })
	if !shed || t.c.Code != http.StatusTooManyRequests {
		t.report(WrongDeny, "code %d for no reason: %s", t.c.Code, t.c.Message)
	}
}

// denier: what the line says about the webhook may have happened.
func (t *trial) denier(p *part, cl claim) {
	w := p.webhook
	if w.Mode != Enforce {
		t.report(ModeEnforced, "%s denies in %s mode", w.Name, w.Mode)
	}
	switch cl.kind {
	case saidDenied:
		t.quoted(p, cl)
	case saidFailed:
		if w.ignores(t.c) {
			t.report(FailurePolicy, "%s is to be ignored when it fails, and denies (%s)", w.Name, cl.cause)
		}
		t.failed(p, cl.cause)
	case saidRefused:
		if !slices.Contains(p.causes, cl.cause) {
			t.report(WrongDeny, "%s was refused (%s) for no reason", w.Name, cl.cause)
		}
	}
}

// quoted: the webhook said that, about this uid.
func (t *trial) quoted(p *part, cl claim) {
	w := p.webhook
	switch {
	case !p.truth.denies() && t.anotherDenies(w):
		t.report(Attribution, "%s is quoted, but it is somebody else who denies", w.Name)
	case !p.truth.denies():
		t.report(WrongDeny, "%s does not deny, and is quoted with %q", w.Name, cl.text)
	case cl.text != p.truth.Message:
		t.report(ForeignAnswer, "%s is quoted with %q, it said %q", w.Name, cl.text, p.truth.Message)
	case p.must || !p.asked:
		t.report(WrongDeny, "%s is quoted, and gave no answer in time", w.Name)
	}
}

func (t *trial) anotherDenies(w *Webhook) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.webhook != w && p.truth.denies() })
}

// missing: a denial that was there before the answer went out is in it.
func (t *trial) missing() {
	for _, p := range t.parts {
		if p.heard && p.truth.denies() && p.webhook.Mode == Enforce && !t.said.denier(p.webhook.Name) {
			t.report(LostDenial, "%s denied %v before the answer, which does not name it", p.webhook.Name, t.c.Done-p.since)
		}
	}
}

// ordered: rejections, then refusals, then failures, each in configuration
// order; the code is that of the first.
func (t *trial) ordered() {
	rank := func(cl claim) int {
		return int(cl.kind)*len(t.chain) + slices.IndexFunc(t.chain, func(w *Webhook) bool { return w.Name == cl.webhook })
	}
	if !slices.IsSortedFunc(t.said.lines, func(x, y claim) int { return rank(x) - rank(y) }) {
		t.report(FirstCode, "lines are out of order: %q", names(t.said.lines))
	}
	first := t.said.lines[0]
	codes := first.cause.codes()
	if p := t.part(first.webhook); p != nil && first.kind == saidDenied {
		codes = []int32{p.truth.Code}
	}
	if codes != nil && !slices.Contains(codes, t.c.Code) {
		t.report(FirstCode, "code %d, that of %s is %v", t.c.Code, first.webhook, codes)
	}
}

// others: those that did not deny. Validating ones may have been abandoned;
// mutating ones before the denial took part, those after it did not.
func (t *trial) others() {
	over := false
	for i := range t.parts {
		p := &t.parts[i]
		name := p.webhook.Name
		_, mentioned := t.said.about(name)
		switch {
		case over && (mentioned || t.said.denier(name) || len(t.m.attempts[t.c.UID].of(name)) > 0):
			t.report(ChainBroken, "%s had its turn after a denial", name)
		case over:
		case t.said.denier(name):
			over = t.c.Phase == Mutating
		case mentioned || t.c.Phase == Mutating:
			t.passed(p)
		}
	}
}
