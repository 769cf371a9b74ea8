// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// Applied is what a cluster has of its registration; nil: that object is not there.
type Applied struct {
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
}

// Difference is one way in which what a cluster has is another registration than the one
// that is printed now.
type Difference struct {
	Object string `json:"object"`          // kind/name
	Field  string `json:"field,omitempty"` // such as webhooks[NAME].rules; empty: the object
	// Applied and Printed are the two values, cut short; empty: there is none. Neither
	// shows a path secret.
	Applied string `json:"applied,omitempty"`
	Printed string `json:"printed,omitempty"`
}

// String returns the difference as one line.
func (d Difference) String() string {
	at := d.Object
	if d.Field != "" {
		at += ": " + d.Field
	}
	return fmt.Sprintf("%s: applied %s, printed %s", at, cmp.Or(d.Applied, "nothing"), cmp.Or(d.Printed, "nothing"))
}

// Differences compares what a cluster has with its registration by what it means. The order
// of keys and of lists without order, fields that an API server fills in, what enforcers of
// managed clouds add to namespaceSelectors, labels and foreign annotations are no
// difference. Nor is a path secret that is one of the Cluster's, be it the one in use or
// the next.
func (r Registration) Differences(c *chain.Cluster, applied Applied) []Difference {
	var out []Difference
	mutating := objectPair{kind: "MutatingWebhookConfiguration", cluster: c, ordered: true}
	if a := applied.Mutating; a != nil {
		mutating.has(a.ObjectMeta, a.Webhooks)
	}
	if p := r.Mutating; p != nil {
		mutating.wants(p.ObjectMeta, p.Webhooks)
	}
	out = mutating.differences(out)
	validating := objectPair{kind: "ValidatingWebhookConfiguration", cluster: c}
	if a := applied.Validating; a != nil {
		validating.has(a.ObjectMeta, asMutating(a.Webhooks))
	}
	if p := r.Validating; p != nil {
		validating.wants(p.ObjectMeta, asMutating(p.Webhooks))
	}
	return validating.differences(out)
}

// asMutating returns webhooks in the type that has the fields of both.
func asMutating(list []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.MutatingWebhook {
	made := make([]admissionregistrationv1.MutatingWebhook, len(list))
	for i := range list {
		w := &list[i]
		made[i] = admissionregistrationv1.MutatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
		}
	}
	return made
}

// objectPair is of the objects of one kind.
type objectPair struct {
	kind             string
	cluster          *chain.Cluster
	ordered          bool // the order of webhooks counts
	applied, printed *side
}

// side is one of the two objects, in the form in which it is compared.
type side struct {
	name        string
	annotations map[string]string
	order       []string
	webhooks    map[string][]fieldValue
}

// fieldValue is a field of a webhook, and its meaning as text.
type fieldValue struct{ field, value string }

func (c *objectPair) has(meta metav1.ObjectMeta, list []admissionregistrationv1.MutatingWebhook) {
	c.applied = c.side(meta, list)
}

func (c *objectPair) wants(meta metav1.ObjectMeta, list []admissionregistrationv1.MutatingWebhook) {
	c.printed = c.side(meta, list)
}

func (c *objectPair) side(meta metav1.ObjectMeta, list []admissionregistrationv1.MutatingWebhook) *side {
	s := &side{name: meta.Name, annotations: meta.Annotations, webhooks: map[string][]fieldValue{}}
	for i := range list {
		s.order = append(s.order, list[i].Name)
		s.webhooks[list[i].Name] = c.meaning(&list[i])
	}
	return s
}

func (c *objectPair) differences(out []Difference) []Difference {
	switch {
	case c.applied == nil && c.printed == nil:
		return out
	case c.printed == nil:
		return append(out, Difference{Object: c.kind + "/" + c.applied.name, Applied: "an object"})
	case c.applied == nil:
		return append(out, Difference{Object: c.kind + "/" + c.printed.name, Printed: "an object"})
	}
	add := func(field, applied, printed string) {
		if applied != printed {
			out = append(out, Difference{c.kind + "/" + c.printed.name, field, short(applied), short(printed)})
		}
	}
	add("metadata.name", c.applied.name, c.printed.name)
	for _, key := range slices.Sorted(maps.Keys(c.printed.annotations)) {
		add("metadata.annotations["+key+"]", c.applied.annotations[key], c.printed.annotations[key])
	}
	for _, name := range c.printed.order {
		at, want := "webhooks["+name+"]", c.printed.webhooks[name]
		have, there := c.applied.webhooks[name]
		if !there {
			add(at, "", "a webhook")
			continue
		}
		for i := range want {
			add(at+"."+want[i].field, have[i].value, want[i].value)
		}
	}
	for _, name := range c.applied.order {
		if _, wanted := c.printed.webhooks[name]; !wanted {
			add("webhooks["+name+"]", "a webhook", "")
		}
	}
	if c.ordered && len(c.applied.order) == len(c.printed.order) {
		add("webhooks", strings.Join(c.applied.order, ", "), strings.Join(c.printed.order, ", "))
	}
	return out
}

// mostShown bounds a value of a Difference, in bytes.
const mostShown = 400

// short returns a value as it is shown. Of certificates that is their sum: one cannot be
// told from another by its beginning.
func short(value string) string {
	if strings.HasPrefix(value, "-----BEGIN") {
		return fmt.Sprintf("certificates with SHA-256 %.8x", sha256.Sum256([]byte(value)))
	}
	if len(value) <= mostShown {
		return value
	}
	return strings.ToValidUTF8(value[:mostShown], "") + "..."
}
