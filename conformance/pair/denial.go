// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// expected is one denial that the dispatcher has to tell of.
type expected struct {
	// webhook is empty where the API server does not say whose denial it is.
	configuration, webhook string
	kind                   kind
	status                 metav1.Status
}

// kind is what a denial is, in the order in which the dispatcher tells of them.
type kind int

const (
	rejected kind = iota
	refused
	failed
)

// Causes of the dispatcher by which one denial is known from another. This module shares
// no code with it: a test of package hook compares them with hook.Causes.
const (
	causeDenied         = "Denied"
	causeDryRun         = "DryRun"
	causeMatchError     = "MatchError"
	causeNotConvertible = "NotConvertible"
	causeBadAnswer      = "BadAnswer"
	causeBadPatch       = "BadPatch"
	causeTimeout        = "Timeout"
	causeUnreachable    = "Unreachable"
	causeTLS            = "TLS"
	causeHTTPStatus     = "HTTPStatus"
)

// causes are those that the dispatcher may name for a denial. One that converts is of
// a webhook that fails because nothing converts the object for it; it may be denied
// before that, for example in a namespace that is unknown.
func (e *expected) causes(converts bool) []string {
	switch {
	case converts && e.kind == failed:
		return []string{causeNotConvertible}
	case e.kind == rejected:
		return []string{causeDenied}
	case e.kind == failed:
		return []string{causeTimeout, causeUnreachable, causeTLS, causeHTTPStatus, causeBadAnswer}
	case strings.Contains(e.status.Message, script.RefusalText):
		return []string{causeBadAnswer}
	case dryRun.MatchString(e.status.Message):
		return []string{causeDryRun}
	case e.status.Code == http.StatusForbidden || e.status.Code == http.StatusNotFound:
		return []string{causeMatchError}
	}
	return []string{causeBadPatch}
}

// uncalled reports whether a denial of that cause needs no call.
func uncalled(cause string) bool {
	return cause == causeDryRun || cause == causeMatchError || cause == causeNotConvertible
}

// Texts of the API server by which one kind of denial is known from another.
var (
	rejection = regexp.MustCompile(`(?s)^admission webhook "([^"]+)" denied the request.*$`)
	failure   = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	dryRun    = regexp.MustCompile(`^admission webhook "([^"]+)" does not support dry run$`)
)

// expect reads a denial of the API server.
func expect(s metav1.Status) expected {
	name := func(m []string) string { return m[1] }
	if m := rejection.FindStringSubmatch(s.Message); m != nil {
		if strings.Contains(s.Message, script.RefusalText) {
			return expected{webhook: name(m), kind: refused, status: s}
		}
		return expected{webhook: name(m), kind: rejected, status: s}
	}
	if m := failure.FindStringSubmatch(s.Message); m != nil {
		return expected{webhook: name(m), kind: failed, status: s}
	}
	e := expected{kind: refused, status: s}
	if m := dryRun.FindStringSubmatch(s.Message); m != nil {
		e.webhook = name(m)
	}
	return e
}

// denial compares denials. Where several webhooks deny, the API server shows the
// one that was first to answer, and the dispatcher all of them, by name and cause.
func (p *Pair) denial(direct *Oracle) ([]Difference, error) {
	if direct.Phase != caller.Validating {
		e := expect(direct.Status)
		return told([]expected{e}, &p.Through.Status, func(e *expected, cause string) bool {
			return cause == causeNotConvertible && direct.notConvertible(e.webhook)
		}), nil
	}
	alone, err := direct.Alone()
	if err != nil {
		return nil, err
	}
	var all []expected
	converts := func(e *expected, _ string) bool { return direct.NotConvertible[e.configuration+"/"+e.webhook] }
	for _, a := range alone {
		if a.Allowed || a.Phase != caller.Validating {
			continue
		}
		e := expect(a.Status)
		e.configuration, e.webhook = a.Configuration, a.Webhook
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(x, y expected) int { return cmp.Compare(x.kind, y.kind) })
	shown := all
	var differences []Difference
	meant := func(row string, now []expected) {
		if len(now) < len(shown) {
			differences = append(differences, Difference{Row: row, Aspect: "denials", Direct: names(shown), Through: names(now)})
		}
		shown = now
	}
	meant(Paths, p.answering(shown))
	if without := needNoCall(shown, converts); len(without) > 0 {
		meant(FirstRefuse, without)
	}
	if len(shown) > 1 {
		differences = append(differences, Difference{Row: Merged, Aspect: "denial", Direct: direct.Status.Message, Through: p.Through.Status.Message})
	}
	return append(differences, told(shown, &p.Through.Status, converts)...), nil
}

// answering are the denials of webhooks on the path of the registration that has
// answered: of several paths the API server shows one.
func (p *Pair) answering(all []expected) []expected {
	m := rejection.FindStringSubmatch(p.Through.Status.Message)
	if m == nil || p.Considers == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(e expected) bool { return !p.Considers(m[1], e.configuration, e.webhook) })
}

// needNoCall are the denials for which nobody is called.
func needNoCall(all []expected, converts func(e *expected, cause string) bool) []expected {
	return slices.DeleteFunc(slices.Clone(all), func(e expected) bool { return !uncalled(e.causes(converts(&e, ""))[0]) })
}

func names(all []expected) []string {
	var out []string
	for _, e := range all {
		out = append(out, fmt.Sprintf("%s/%s %d", e.configuration, e.webhook, e.status.Code))
	}
	return out
}

// told compares what must be denied with what the dispatcher tells: each denial, in
// order, by name, cause and text, and the code of the first.
func told(want []expected, is *metav1.Status, converts func(e *expected, cause string) bool) []Difference {
	got := causesOf(is)
	differ := func(aspect string) []Difference {
		return []Difference{{Aspect: aspect, Direct: names(want), Through: text(is)}}
	}
	if len(want) != len(got) {
		return differ(fmt.Sprintf("number of denials, %v", got))
	}
	if len(want) == 0 {
		return differ("denial by nobody")
	}
	var all []Difference
	lines := make([]string, len(got))
	for i, cause := range got {
		e, said := &want[i], string(cause.Type)
		lines[i] = cause.Message
		switch {
		case e.webhook != "" && !e.isNamed(cause.Field):
			all = append(all, differ("webhook that denies, "+cause.Field)...)
		case !slices.Contains(e.causes(converts(e, said)), said):
			all = append(all, differ("cause of "+cause.Field+", "+said)...)
		default:
			all = append(all, e.worded(cause.Message)...)
		}
	}
	if whole := strings.Join(lines, "\n"); !strings.HasSuffix(is.Message, " denied the request: "+whole) {
		all = append(all, Difference{Aspect: "message", Direct: whole, Through: is.Message})
	}
	first := &want[0]
	if first.status.Code != is.Code {
		d := Difference{Aspect: "code", Direct: text(&first.status), Through: text(is)}
		if first.kind == failed && slices.Contains(failureCodes, is.Code) {
			d.Row = Causes
		}
		all = append(all, d)
	}
	return append(all, first.retry(is)...)
}

// isNamed reports whether a cause of the dispatcher, which names the configuration as well, is
// about the webhook.
func (e *expected) isNamed(field string) bool {
	configuration, webhook, named := strings.Cut(field, "/")
	if !named {
		return field == e.webhook
	}
	// Random worlds put the number of the case before it.
	return webhook == e.webhook && (e.configuration == "" || configuration == e.configuration || strings.HasSuffix(configuration, "-"+e.configuration))
}

// causesOf are the denials that the dispatcher tells of, for machines.
func causesOf(s *metav1.Status) []metav1.StatusCause {
	if s.Details == nil {
		return nil
	}
	return s.Details.Causes
}

// worded compares the text of a denial. Texts of the API server's own, about patches
// for example, need not be the same.
func (e *expected) worded(is string) []Difference {
	was := e.status.Message
	d := Difference{Aspect: "message", Direct: was, Through: is}
	switch {
	case e.kind == failed && !strings.Contains(is, failure.FindString(was)),
		dryRun.MatchString(was) && is != was,
		e.kind == rejected && !strings.Contains(plain(is), plain(cut(was, maxMessageRunes))):
		return []Difference{d}
	case e.kind == rejected && is != was:
		if altered(was) || is == shown(was) {
			d.Row = Texts
		}
		return []Difference{d}
	}
	return nil
}

func text(s *metav1.Status) string { return fmt.Sprintf("%d %s", s.Code, s.Message) }

func (e *expected) retry(is *metav1.Status) []Difference {
	wanted, got := retryAfter(&e.status), retryAfter(is)
	if wanted == got || e.kind != rejected {
		return nil
	}
	d := Difference{Aspect: "retryAfterSeconds", Direct: wanted, Through: got}
	if wanted > maxRetryAfter && got == maxRetryAfter {
		d.Row = RetryAfter
	}
	return []Difference{d}
}

func retryAfter(s *metav1.Status) int32 {
	if s.Details == nil {
		return 0
	}
	return s.Details.RetryAfterSeconds
}

// failureCodes are what the dispatcher says where the API server says 500.
var failureCodes = []int32{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
