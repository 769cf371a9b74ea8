// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Explain implements hook.Explainer: it says what each expression came to, and the
// variables that were asked for.
func (b *Binding) Explain(v *hook.View) (hook.Explanation, error) {
	var (
		x       hook.Explanation
		results []*result
		over    given
		wanted  *celenv.Unanswered
	)
	q := explained(v)
	params, err := b.params.Find(q)
	if err == nil && b.compiled.namespace != celenv.NamespaceUnused {
		over.namespace, err = NamespaceObject(q)
	}
	if b.compiled.depends(b.params, v, err) {
		x.Answer = dependsOnCluster
		return x, nil
	}
	if err != nil {
		params = nil
	}
	for _, over.param = range params {
		r := b.compiled.evaluate(&celenv.Variables{Input: v.Variables().Input}, over, time.Time{}, true)
		if b.params != nil {
			x.Steps = append(x.Steps, fmt.Sprintf("params: %s %s", b.params.Kind(), over.param))
		}
		x.Steps = append(x.Steps, r.steps...)
		if wanted = r.unanswered; wanted != nil {
			break
		}
		results = append(results, r)
	}
	x.Answer = b.explain(results, err)
	if wanted != nil {
		x.Answer = wanted.Error()
	}
	return x, nil
}

// explain is the answer in words. err says why what it takes is not known.
func (b *Binding) explain(results []*result, err error) string {
	var resp codec.Response
	if err != nil {
		resp, err = b.unconfigured(err)
	} else {
		resp, err = b.answer(results)
	}
	var text string
	switch {
	case err != nil:
		text = "fails: " + err.Error()
	case resp.Allowed:
		text = "allows"
	default:
		text = "denies: " + resp.Message
	}
	return text + b.besides(results)
}

// besides says whom else the actions tell what does not hold.
func (b *Binding) besides(results []*result) (text string) {
	var list []decision
	for _, r := range results {
		list = append(list, r.decisions...)
	}
	list = distinct(list)
	if list = list[:min(len(list), maxTold)]; len(list) == 0 {
		return ""
	}
	messages := lines(list)
	for _, action := range b.Actions {
		switch action {
		case admissionregistrationv1.Warn:
			text += ", warns: " + messages
		case admissionregistrationv1.Audit:
			text += ", audits: " + messages
		}
	}
	return text
}
