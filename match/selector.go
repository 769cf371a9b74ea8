// SPDX-License-Identifier: Apache-2.0

package match

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// selector is a compiled LabelSelector: all requirements must hold, so that an
// empty one selects everything. It compares bytes, and nothing is allocated per
// review.
type selector []requirement

type requirement struct {
	key    string
	op     metav1.LabelSelectorOperator
	values []string
}

// compileSelector compiles a selector. One that is nil has been defaulted to the
// empty one.
func compileSelector(name string, s *metav1.LabelSelector) (selector, error) {
	if s == nil {
		return nil, nil
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return nil, &CompileError{Field: name, Err: err}
	}
	var c selector
	for key, value := range s.MatchLabels {
		c = append(c, requirement{key, metav1.LabelSelectorOpIn, []string{value}})
	}
	for _, e := range s.MatchExpressions {
		c = append(c, requirement{e.Key, e.Operator, slices.Clone(e.Values)})
	}
	slices.SortFunc(c, func(a, b requirement) int { return cmp.Compare(a.key, b.key) })
	return c, nil
}

// holds decides for a label that exists or not, and whose value is listed in
// values or not.
func (q *requirement) holds(exists, listed bool) bool {
	switch q.op {
	case metav1.LabelSelectorOpIn:
		return exists && listed
	case metav1.LabelSelectorOpNotIn:
		return !exists || !listed
	case metav1.LabelSelectorOpExists:
		return exists
	}
	return !exists
}

func (q *requirement) lists(value []byte) bool {
	for _, v := range q.values {
		if v == string(value) {
			return true
		}
	}
	return false
}

// isName reports whether the requirement is on the label that the API server
// itself gives every namespace: its name.
func (q *requirement) isName() bool { return q.key == corev1.LabelMetadataName }

// selects reports whether an object with these labels is selected.
func (s selector) selects(labels codec.Labels) bool {
	for i := range s {
		if value, ok := labels.Lookup(s[i].key); !s[i].holds(ok, s[i].lists(value)) {
			return false
		}
	}
	return true
}

// selectsNamespace is selects for a Namespace named name. An empty name is not
// known yet (generateName): then the labels say it, or nobody.
func (s selector) selectsNamespace(labels codec.Labels, name []byte) bool {
	for i := range s {
		value, ok := labels.Lookup(s[i].key)
		if s[i].isName() && len(name) > 0 {
			value, ok = name, true
		}
		if !s[i].holds(ok, s[i].lists(value)) {
			return false
		}
	}
	return true
}

// selectsStored is selectsNamespace for labels as a source keeps them.
func (s selector) selectsStored(labels map[string]string, name []byte) bool {
	for i := range s {
		value, ok := labels[s[i].key]
		exists, listed := ok, slices.Contains(s[i].values, value)
		if s[i].isName() {
			exists, listed = true, s[i].lists(name)
		}
		if !s[i].holds(exists, listed) {
			return false
		}
	}
	return true
}

// needsOnlyName reports whether every requirement is on the namespace's name.
func (s selector) needsOnlyName() bool {
	for i := range s {
		if !s[i].isName() {
			return false
		}
	}
	return true
}

// An objectSelector is asked about the new object, as mutated so far, and about
// the old one; either will do. What is null or has no metadata, such as
// PodExecOptions, is never selected by a selector that asks for anything, not
// even for the absence of a label.
func (m *Matcher) objectFits(s *Subject) bool {
	return len(m.objects) == 0 || m.objects.selectsObject(s.Object) || m.objects.selectsObject(&s.Review.OldObject)
}

func (s selector) selectsObject(o *codec.Object) bool {
	return o.HasMetadata() && s.selects(o.Labels)
}
