// SPDX-License-Identifier: Apache-2.0

package match

import (
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// A namespaceSelector is asked about the labels of the namespace that the request
// is in. Cluster-scoped objects are in none and always pass, but for Namespaces:
// they are selected by labels of their own, on CREATE and UPDATE by those that
// were submitted, on DELETE and for subresources by those that are stored.
//
// Reviews carry no stored labels: the cluster's source knows them, or the old
// object if it is a Namespace. The name, which is a label too, is always known.
// What cannot be known is an error and not a guess.
func (m *Matcher) namespaceFits(s *Subject) (bool, error) {
	r := s.Review
	itself := string(r.Resource.Resource) == namespacesResource
	switch {
	case len(m.namespaces) == 0, len(r.Namespace) == 0 && !itself:
		return true, nil
	case itself && submitsLabels(r):
		return m.submittedFits(s.Object)
	case m.namespaces.needsOnlyName():
		return m.namespaces.selectsStored(nil, r.Namespace), nil
	}
	labels, err := s.storedLabels()
	if err == nil {
		return m.namespaces.selectsStored(labels, r.Namespace), nil
	}
	if itself && r.OldObject.HasMetadata() && !errors.Is(err, ErrNotLookedUp) {
		return m.namespaces.selectsNamespace(r.OldObject.Labels, r.Namespace), nil
	}
	if errors.Is(err, ErrNoNamespace) {
		return false, fmt.Errorf("namespaces %q %w", r.Namespace, err)
	}
	return false, fmt.Errorf("the labels of namespace %q are not known: %w", r.Namespace, err)
}

const namespacesResource = "namespaces"

func submitsLabels(r *codec.Review) bool {
	return len(r.SubResource) == 0 && (r.Operation == codec.Create || r.Operation == codec.Update)
}

var errNoMetadata = errors.New("the Namespace in the request has no metadata")

// submittedFits goes by the name rather than by the label of the name: the API
// server sets that label itself, whatever a user or a webhook made of it.
func (m *Matcher) submittedFits(o *codec.Object) (bool, error) {
	if !o.HasMetadata() {
		return false, errNoMetadata
	}
	return m.namespaces.selectsNamespace(o.Labels, o.Name), nil
}

// NeededLabels returns, sorted, the namespace labels that somebody must supply
// for a cluster before the Matcher can decide for its requests:
// kubernetes.io/metadata.name is known of every namespace, cluster-scoped objects
// pass any selector, and Namespaces bring labels of their own.
func (m *Matcher) NeededLabels() []string {
	if !slices.ContainsFunc(m.rules, func(r rule) bool { return r.mayBeNamespaced() }) {
		return nil
	}
	return m.SelectedLabels()
}

// SelectedLabels returns, sorted, the labels of stored namespaces that the Matcher
// may look at. They are more than NeededLabels: a Namespace that is deleted is
// judged by what the source has, if it has it. What is not among them a source
// need not keep.
func (m *Matcher) SelectedLabels() []string {
	var keys []string
	for i := range m.namespaces {
		if !m.namespaces[i].isName() {
			keys = append(keys, m.namespaces[i].key)
		}
	}
	if m.narrower != nil {
		keys = append(keys, m.narrower.SelectedLabels()...)
		slices.Sort(keys)
	}
	return slices.Compact(keys) // a selector is sorted by key
}

// mayBeNamespaced reports whether the rule can select an object in a namespace.
func (r *rule) mayBeNamespaced() bool {
	if r.scope == admissionregistrationv1.ClusterScope {
		return false
	}
	return !r.groups.isCore() || slices.ContainsFunc(r.resources, func(p ResourcePattern) bool { return p.resource != namespacesResource })
}

// Namespaces returns what is known of the labels of a cluster's namespaces, at once
// and without I/O. The error is ErrNoNamespace for a namespace that does not exist,
// ErrNotLookedUp for one that must be looked up first, or else says, to the user
// whose request is refused, why nothing is known. The labels are read only.
type Namespaces interface {
	NamespaceLabels(name string) (labels map[string]string, err error)
}

// NamespaceLookup is implemented by Namespaces that return ErrNotLookedUp.
type NamespaceLookup interface {
	Namespaces
	// LookUpNamespace asks the cluster and returns well before the deadline; zero:
	// within a bound of its own. Its error is never ErrNotLookedUp.
	LookUpNamespace(name string, deadline time.Time) (labels map[string]string, err error)
}

var (
	// ErrNoNamespace is the error for a namespace that does not exist.
	ErrNoNamespace = errors.New("not found")
	// ErrNotLookedUp is the error for a namespace that the cluster must be asked for.
	ErrNotLookedUp = hook.ErrNotLookedUp
)

// storedNamespace is what is known of the review's namespace, once a webhook needed
// it: all webhooks are matched against one answer.
type storedNamespace struct {
	known  bool // also that there is an error
	labels map[string]string
	err    error
}

// errNoSource is the error where nobody can be asked.
var errNoSource = errors.New("the cluster has no source of them")

// storedLabels returns the labels that the source knows of the review's
// namespace.
func (s *Subject) storedLabels() (labels map[string]string, err error) {
	n := &s.namespace
	if !n.known {
		n.known, n.err = true, errNoSource
		if s.Namespaces != nil {
			n.labels, n.err = s.Namespaces.NamespaceLabels(string(s.Review.Namespace))
		}
	}
	return n.labels, n.err
}

// SetNamespaceLabels makes labels, or err, what is known of the review's namespace:
// the result of the lookup that a Decision with NamespaceNotLookedUp asks for.
func (s *Subject) SetNamespaceLabels(labels map[string]string, err error) {
	s.namespace = storedNamespace{known: true, labels: labels, err: err}
}
