// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registration"
)

// part is one of the two objects.
type part struct {
	phase, resource string
	wants           []byte // as it would be printed, in JSON; nil: none
	has             []byte // nil: none
	found, added    []string
	ours            bool
	private         bool // it is not applied: see hook
}

func partsOf(r *registration.Registration) []part {
	parts := []part{
		{phase: "mutate", resource: "mutatingwebhookconfigurations"},
		{phase: "validate", resource: "validatingwebhookconfigurations"},
	}
	if r.Mutating != nil {
		parts[0].wants = document(r.Mutating)
	}
	if r.Validating != nil {
		parts[1].wants = document(r.Validating)
	}
	return parts
}

func document(o any) []byte {
	text, err := json.Marshal(o)
	if err != nil { // types of the API always have a form
		panic(err)
	}
	return text
}

// compare asks for the object and compares it.
func (p *part) compare(ctx context.Context, c *caller) (err error) {
	if p.has, err = c.get(ctx, p.resource); err != nil {
		return err
	}
	return p.judge()
}

func (p *part) judge() error {
	has, wants := &configuration{}, &configuration{}
	var err error
	if p.has != nil {
		if has, err = read(p.has); err != nil {
			return errors.New("the API sends something else than a webhook configuration")
		}
	}
	if p.wants != nil {
		if wants, err = read(p.wants); err != nil {
			return err
		}
	}
	p.ours, p.private = has.isOurs(), has.isPrivate() || wants.isPrivate()
	p.found, p.added = differences(has, wants, p.phase == "mutate")
	if p.has != nil && p.wants == nil && len(has.hooks) > 0 {
		p.found = []string{"no webhook of this phase is left: delete " + p.resource + " " + registrationName}
	}
	return nil
}

// apply applies what is wanted, with what an enforcer has added, and compares again.
func (p *part) apply(ctx context.Context, c *caller, dryRun bool) error {
	if p.has != nil && !dryRun {
		if err := p.claim(ctx, c); err != nil {
			return err
		}
	}
	text, err := p.withAdded()
	if err != nil {
		return err
	}
	got, err := c.apply(ctx, p.resource, text, dryRun)
	if err != nil || dryRun {
		return err
	}
	p.has = got
	return p.judge()
}

// claim makes the webhooks of the object ours.
func (p *part) claim(ctx context.Context, c *caller) error {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(p.has, &o); err != nil {
		return err
	}
	taken, ok, err := takeOver(o.ManagedFields, metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	if err != nil || !ok {
		return err
	}
	change, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": taken},
		// One that was changed meanwhile answers 409.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": o.ResourceVersion},
	})
	if err != nil {
		return err
	}
	_, err = c.patch(ctx, p.resource, change)
	return err
}

// withAdded returns what is wanted, with the terms that an enforcer has added to the
// webhooks that are there.
func (p *part) withAdded() ([]byte, error) {
	if p.has == nil {
		return p.wants, nil
	}
	has, err := read(p.has)
	if err != nil {
		return nil, err
	}
	// The kinds differ in one field, which the validating one does not have.
	var o admissionregistrationv1.MutatingWebhookConfiguration
	if err := json.Unmarshal(p.wants, &o); err != nil {
		return nil, err
	}
	had := byName(has)
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		h := had[w.Name]
		if h == nil {
			continue
		}
		for _, r := range beyond(h.namespaces, requirementsOf(w.NamespaceSelector)) {
			if !isEnforced(r) {
				continue
			}
			if w.NamespaceSelector == nil {
				w.NamespaceSelector = &metav1.LabelSelector{}
			}
			w.NamespaceSelector.MatchExpressions = append(w.NamespaceSelector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: r.key, Operator: metav1.LabelSelectorOperator(r.operator), Values: r.values})
		}
	}
	return json.Marshal(o)
}
