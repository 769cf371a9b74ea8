// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// selector is a compiled LabelSelector: all requirements must hold. It compares
// bytes, so that nothing is allocated per review.
type selector []requirement

type requirement struct {
	key    string
	op     metav1.LabelSelectorOperator
	values []string
}

func compileSelector(name string, s *metav1.LabelSelector) (selector, error) {
	if s == nil {
		return nil, nil
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var c selector
	for key, value := range s.MatchLabels {
		c = append(c, requirement{key, metav1.LabelSelectorOpIn, []string{value}})
	}
	for _, e := range s.MatchExpressions {
		c = append(c, requirement{e.Key, e.Operator, e.Values})
	}
	slices.SortFunc(c, func(a, b requirement) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	return c, nil
}

func (r *requirement) holds(value []byte, ok bool) bool {
	switch r.op {
	case metav1.LabelSelectorOpIn:
		return ok && r.hasValue(value)
	case metav1.LabelSelectorOpNotIn:
		return !ok || !r.hasValue(value)
	case metav1.LabelSelectorOpExists:
		return ok
	}
	return !ok
}

func (r *requirement) hasValue(value []byte) bool {
	for _, v := range r.values {
		if v == string(value) {
			return true
		}
	}
	return false
}

// matches reports whether all requirements hold for an object's labels.
func (s selector) matches(labels codec.Labels) bool {
	for i := range s {
		if value, ok := labels.Lookup(s[i].key); !s[i].holds(value, ok) {
			return false
		}
	}
	return true
}

// matchesMap is matches for a namespace's labels; the name is known without them.
func (s selector) matchesMap(labels map[string]string, name []byte) bool {
	for i := range s {
		if s[i].key == corev1.LabelMetadataName {
			if !s[i].holds(name, true) {
				return false
			}
			continue
		}
		if value, ok := labels[s[i].key]; !s[i].holdsString(value, ok) {
			return false
		}
	}
	return true
}

func (r *requirement) holdsString(value string, ok bool) bool {
	switch r.op {
	case metav1.LabelSelectorOpIn:
		return ok && slices.Contains(r.values, value)
	case metav1.LabelSelectorOpNotIn:
		return !ok || !slices.Contains(r.values, value)
	case metav1.LabelSelectorOpExists:
		return ok
	}
	return !ok
}

// needsOnlyName reports whether every requirement is on the one label that every
// namespace is known to have.
func (s selector) needsOnlyName() bool {
	for i := range s {
		if s[i].key != corev1.LabelMetadataName {
			return false
		}
	}
	return true
}

// objectFits reports whether the new or the old object fits the objectSelector.
// What is null or has no metadata never fits a selector that asks for anything.
func (m *Matcher) objectFits(s *Subject) bool {
	return len(m.objects) == 0 || m.objects.fitsObject(s.Object) || m.objects.fitsObject(&s.Review.OldObject)
}

func (s selector) fitsObject(o *codec.Object) bool {
	return o.HasMetadata && s.matches(o.Labels)
}

// namespaceFits reports whether the review's namespace fits the
// namespaceSelector. Cluster-scoped objects other than Namespaces always do.
func (m *Matcher) namespaceFits(s *Subject) (bool, error) {
	r := s.Review
	itself := string(r.Resource.Resource) == "namespaces"
	if len(m.namespaces) == 0 || (len(r.Namespace) == 0 && !itself) {
		return true, nil
	}
	if itself && len(r.SubResource) == 0 && (r.Operation == codec.Create || r.Operation == codec.Update) {
		return m.namespaces.matches(s.Object.Labels), nil
	}
	if m.namespaces.needsOnlyName() || s.Namespaces == nil {
		return m.namespaces.matchesMap(nil, r.Namespace), nil
	}
	if labels, ok := s.Namespaces.NamespaceLabels(string(r.Namespace)); ok {
		return m.namespaces.matchesMap(labels, r.Namespace), nil
	}
	if itself && r.OldObject.HasMetadata {
		return m.namespaces.matches(r.OldObject.Labels), nil
	}
	return false, fmt.Errorf("namespaces %q not found", r.Namespace)
}
