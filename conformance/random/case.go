// SPDX-License-Identifier: Apache-2.0

package random

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// Case is a cluster with its webhooks, and admissions to play in it.
type Case struct {
	Seed uint64
	// Focus is the Form of one webhook, which is likely to be called.
	Focus script.Form
	// Compatibility of the bindings of all its webhooks.
	Compatibility string
	// Registered: the API server calls the dispatcher by the registration that it
	// prints. Otherwise it calls for everything and converts nothing.
	Registered bool

	Namespaces map[string]map[string]string // labels by name
	Mutating   []Configuration
	Validating []Configuration
	Admissions []Admission
}

// Configuration is a webhook configuration of either kind. Validating ones are
// written as mutating ones, of which they have all fields but one.
type Configuration struct {
	Name     string
	Webhooks []Webhook
}

// Webhook is one of a Configuration, and how it answers.
type Webhook struct {
	admissionregistrationv1.MutatingWebhook
	Script script.Script
}

// AdmissionsPerCase is how many admissions a Case has, unless its webhooks hang.
const AdmissionsPerCase = 8

// New returns the Case of a seed. Seeds that follow each other have every Form in
// focus in turn.
func New(seed uint64) Case {
	s := newSource(seed)
	w := writer{source: s, theme: some(s, 2, 3, kinds...), conditioned: s.percent(30)}
	c := Case{
		Seed:          seed,
		Focus:         focuses[seed%uint64(len(focuses))],
		Compatibility: "Strict",
		Registered:    s.percent(50),
		Namespaces:    s.namespaces(),
	}
	if c.Registered {
		// The second round does not reach from one path of the registration to another
		// (docs/semantics.md, "Several entries"): there is one path, or one round,
		// after which nothing is matched again.
		w.known = true
		w.anyForm = s.percent(50)
		w.once = !w.anyForm
	}
	c.Mutating = w.configurations(true, 1, 3)
	w.anyForm, w.once = false, false
	c.Validating = w.configurations(false, 1, 3)
	if s.percent(15) {
		c.Compatibility = "APIServer"
	}
	validating := false
	if c.Focus == "" {
		w.execFocus(&c)
	} else {
		validating = w.focusOn(&c)
	}
	admissions := AdmissionsPerCase
	if c.Focus == script.Hang {
		admissions = 1 // each takes a second
	}
	for len(c.Admissions) < admissions {
		c.Admissions = append(c.Admissions, w.admission(c.Namespaces))
	}
	if validating && w.percent(80) {
		w.chorus(&c)
	}
	c.keepNames()
	return c
}

// keepNames keeps patches from replacing all labels of a Namespace: the API server
// puts its name back among them, which is defaulting between two webhooks.
func (c *Case) keepNames() {
	if !slices.ContainsFunc(c.Admissions, func(a Admission) bool { return a.Kind.Kind == "Namespace" }) {
		return
	}
	for i := range c.Mutating {
		for j := range c.Mutating[i].Webhooks {
			s := &c.Mutating[i].Webhooks[j].Script
			s.Patch = bytes.ReplaceAll(s.Patch, []byte(`"path":"/metadata/labels"`), []byte(`"path":"/metadata/annotations"`))
		}
	}
}

// focuses are all Forms, and as often as three of them none.
var focuses = append(script.Forms(), "", "", "")

// focusOn gives one webhook the Form in focus, and has it called for almost
// everything. It reports whether that is a validating one.
func (w *writer) focusOn(c *Case) (validating bool) {
	chosen := c.Mutating
	if !c.Focus.OfPatch() && w.percent(50) {
		chosen, validating = c.Validating, true
	}
	configuration := &chosen[w.IntN(len(chosen))]
	h := &configuration.Webhooks[w.IntN(len(configuration.Webhooks))]
	h.Rules = everything()
	h.NamespaceSelector, h.ObjectSelector, h.MatchConditions = &metav1.LabelSelector{}, &metav1.LabelSelector{}, nil
	if c.Focus == script.Hang {
		h.TimeoutSeconds = pointer(int32(1))
	}
	h.Script.Form, h.Script.Allowed, h.Script.TellsForm = c.Focus, w.percent(60), false
	if c.Focus.OfPatch() {
		h.Script.Allowed = w.percent(80)
	}
	if !h.Script.Allowed {
		w.explain(&h.Script)
	}
	return validating
}

// chorus has most of the validating webhooks deny at once, with a call or without, or
// fail open, beside the one in focus, and the mutating ones let everything pass.
func (w *writer) chorus(c *Case) {
	for i := range c.Mutating {
		for j := range c.Mutating[i].Webhooks {
			c.Mutating[i].Webhooks[j].Script = script.Script{Allowed: true}
		}
	}
	part := w.failing
	if w.percent(70) {
		part = w.denying
		if !c.Registered && w.percent(60) { // in a registration, such webhooks have paths of their own
			part = w.denyingUncalled
		}
	}
	for i := range c.Validating {
		for j := range c.Validating[i].Webhooks {
			h := &c.Validating[i].Webhooks[j]
			if h.Script.Form == c.Focus || w.percent(30) {
				continue
			}
			h.Rules = everything()
			h.NamespaceSelector, h.ObjectSelector, h.MatchConditions = &metav1.LabelSelector{}, &metav1.LabelSelector{}, nil
			part(h)
		}
	}
}

func (w *writer) failing(h *Webhook) {
	h.FailurePolicy = pointer(admissionregistrationv1.Ignore)
	h.Script = script.Script{Form: pick(w.source, script.Plain()...), Allowed: true}
}

func (w *writer) denying(h *Webhook) {
	h.Script = script.Script{}
	w.explain(&h.Script)
}

// denyingUncalled has a webhook deny without a call, mostly: it lists another form
// only, or has a condition that fails.
func (w *writer) denyingUncalled(h *Webhook) {
	w.denying(h)
	h.FailurePolicy = pointer(admissionregistrationv1.Fail)
	switch w.IntN(4) {
	case 0, 1:
		h.Rules[0].APIVersions = []string{"v0"}
		h.MatchPolicy = pointer(admissionregistrationv1.Equivalent)
	case 2:
		h.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "fails", Expression: "request.userInfo.extra['none'] == ['a']"}}
	}
}

// execFocus has a mutating webhook change the options of an exec, in a Case where
// no Form is in focus.
func (w *writer) execFocus(c *Case) {
	configuration := slices.MinFunc(c.Mutating, func(a, b Configuration) int { return strings.Compare(a.Name, b.Name) })
	h := &configuration.Webhooks[0]
	h.Rules = everything()
	h.NamespaceSelector, h.ObjectSelector, h.MatchConditions = &metav1.LabelSelector{}, &metav1.LabelSelector{}, nil
	h.Script = script.Script{Allowed: true, Patch: json.RawMessage(`[{"op":"replace","path":"/stdin","value":false}]`)}
	w.theme = kinds[:1] // pods
	for a := w.admission(c.Namespaces); ; a = w.admission(c.Namespaces) {
		if a.Operation == admission.Connect {
			c.Admissions = append(c.Admissions, a)
			return
		}
	}
}
