// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// rows is how many rows bindingFields has.
const rows = 17

// bindingFields is everything that a WebhookBinding may say of how a webhook is
// dispatched: what the field is called, how it is read, which webhooks cannot have
// it, and where it goes. Problems come in this order, which is that of the spec. A
// default is what the field has where no binding says anything: its zero value, or
// what made has before the rows are applied.
//
// Bindings compose: several may say different fields for one webhook. Two that say
// different values of one field are refused (E16).
var bindingFields = [rows]bindingField{
	both(row("mode", enum[chain.Mode](func(s *spec) string { return s.Mode }, chain.Modes[:]), anyWebhook,
		func(w *made, v chain.Mode) { w.Mode = v })),
	both(row("timeout", (*bindingReader).readTimeout, timeoutFits,
		func(w *made, v time.Duration) { w.Timeout = v })),
	row("endpoints", (*bindingReader).readEndpoints, anyWebhook,
		func(w *made, v endpoints) { w.at.Endpoints = *v.specs }),
	row("caFile", (*bindingReader).readAuthorities, anyWebhook,
		func(w *made, v string) { w.at.CABundle = []byte(v) }),
	row("clientCertificate", (*bindingReader).readClient, anyWebhook,
		func(w *made, v keyPair) {
			w.at.ClientCertificate, w.at.ClientKey = []byte(v.certificate), []byte(v.key)
		}),
	row("bearerTokenFile", (*bindingReader).readToken, anyWebhook,
		func(w *made, v string) { w.at.BearerToken = v }),
	row("stage", enum[chain.Stage](func(s *spec) string { return s.Stage }, chain.Stages[:]), stageFits,
		func(w *made, v chain.Stage) { w.Stage = v }),
	both(row("order", plain(func(s *spec) *int32 { return s.Order }), anyWebhook,
		func(w *made, v int32) { w.Order = v })),
	row("failurePolicy", oneWord(func(s *spec) string { return s.FailurePolicy }, "Retry"), mayRepeat,
		func(w *made, _ string) { w.retry() }),
	row("hedge", oneWord(func(s *spec) string { return s.Hedge }, hedgeAuto, hedgeOn, hedgeOff), mayHedge,
		func(w *made, v string) { w.hook.Repeat.NoHedge = v == hedgeOff }),
	row("denyWins", plain(func(s *spec) *bool { return s.DenyWins }), anyWebhook,
		func(w *made, v bool) { w.hook.Repeat.DenyWins = v }),
	row("breaker", (*bindingReader).readBreaker, anyWebhook,
		func(w *made, v transport.BreakerSpec) { w.at.Breaker = v }),
	row("probe", enum[chain.Probe](func(s *spec) string { return s.Probe }, chain.Probes[:]), mayBeProbed,
		func(w *made, v chain.Probe) { w.Probe = v }),
	row("join", enum[chain.Join](func(s *spec) string { return s.Join }, chain.Joins[:]), anyWebhook,
		func(w *made, v chain.Join) { w.Join = v }),
	row("encoding", enum[webhook.Encoding](func(s *spec) string { return s.Encoding }, webhook.Encodings[:]), anyWebhook,
		func(w *made, v webhook.Encoding) { w.hook.Wire.Encoding = v }),
	row("compression", enum[webhook.Compression](func(s *spec) string { return s.Compression }, webhook.Compressions[:]), anyWebhook,
		func(w *made, v webhook.Compression) { w.hook.Wire.Compression = v }),
	row("compatibility", enum[codec.Compatibility](func(s *spec) string { return s.Compatibility }, codec.Compatibilities[:]), anyWebhook,
		func(w *made, v codec.Compatibility) { w.hook.Compat = v }),
}

// dispatch is what bindings say of one webhook in one cluster, by the rows of
// bindingFields; nil: nothing. It is comparable: equal dispatches of a webhook share
// everything that is compiled.
type dispatch [rows]any

// bindingField is a row of bindingFields.
type bindingField struct {
	name     string // of the field of the spec
	policies bool   // it holds for policies, too; what is about calls says nothing of them
	// read returns what the binding says; nil: nothing, or what is a problem.
	read func(*bindingReader, *manifest.Binding, *field.Path) any
	// refuses returns why the webhook cannot have the value; "": it can.
	refuses func(e *entry, value any) string
	// apply puts the value where it goes.
	apply func(into *made, value any)
}

// both is a row for webhooks and policies.
func both(f bindingField) bindingField {
	f.policies = true
	return f
}

func row[T comparable](name string, read func(*bindingReader, *manifest.Binding, *field.Path) *T,
	refuses func(*entry, T) string, apply func(*made, T)) bindingField {
	return bindingField{
		name: name,
		read: func(r *bindingReader, m *manifest.Binding, at *field.Path) any {
			if v := read(r, m, at); v != nil {
				return *v
			}
			return nil
		},
		refuses: func(e *entry, value any) string { return refuses(e, value.(T)) },
		apply:   func(into *made, value any) { apply(into, value.(T)) },
	}
}

type spec = v1alpha1.WebhookBindingSpec

// oneWord reads one of words; the empty string is unset.
func oneWord(said func(*spec) string, words ...string) func(*bindingReader, *manifest.Binding, *field.Path) *string {
	return func(r *bindingReader, m *manifest.Binding, at *field.Path) *string {
		text := said(&m.Spec)
		switch {
		case text == "":
			return nil
		case slices.Contains(words, text):
			return &text
		}
		r.problem(m.Problems(field.ErrorList{field.NotSupported(at, text, words)})...)
		return nil
	}
}

// enum reads an enumeration, whose words stand where its values are.
func enum[T ~int8 | ~uint8](said func(*spec) string, words []string) func(*bindingReader, *manifest.Binding, *field.Path) *T {
	read := oneWord(said, words...)
	return func(r *bindingReader, m *manifest.Binding, at *field.Path) *T {
		text := read(r, m, at)
		if text == nil {
			return nil
		}
		return new(T(slices.Index(words, *text)))
	}
}

// plain reads a field that may have any value.
func plain[T any](said func(*spec) *T) func(*bindingReader, *manifest.Binding, *field.Path) *T {
	return func(_ *bindingReader, m *manifest.Binding, _ *field.Path) *T { return said(&m.Spec) }
}

const (
	hedgeAuto = "Auto" // where there are no side effects
	hedgeOn   = "On"   // the same, and refused for webhooks with any
	hedgeOff  = "Off"
)

func anyWebhook[T any](*entry, T) string { return "" }

func stageFits(e *entry, s chain.Stage) string {
	if s != chain.StageTransactional || e.configuration.Phase != chain.Mutating {
		return ""
	}
	return fmt.Sprintf("is for validating webhooks; %s is mutating", e.name())
}

func timeoutFits(e *entry, d time.Duration) string {
	if d <= e.timeout() {
		return ""
	}
	return fmt.Sprintf("is above the %s of webhook %s", e.timeout(), e.name())
}

// mayRepeat refuses more than one attempt at a webhook with side effects (E6). That it
// has none on a dry run is not enough: it would get no second attempt for the
// requests that matter.
func mayRepeat(e *entry, _ string) string {
	if sideEffectsOf(*e.spec.SideEffects).Repeatable(false) {
		return ""
	}
	return fmt.Sprintf("asks more than once, and webhook %s has side effects (sideEffects: %s)", e.name(), *e.spec.SideEffects)
}

func mayHedge(e *entry, hedge string) string {
	if hedge != hedgeOn {
		return ""
	}
	return mayRepeat(e, hedge)
}

// mayBeProbed refuses probes that have side effects (E6). They are dry runs.
func mayBeProbed(e *entry, p chain.Probe) string {
	if p != chain.ProbeReview || sideEffectsOf(*e.spec.SideEffects).Repeatable(true) {
		return ""
	}
	return fmt.Sprintf("asks about what nobody does, and webhook %s has side effects", e.name())
}
