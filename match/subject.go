// SPDX-License-Identifier: Apache-2.0

package match

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Subject is what webhooks are matched against. It borrows the Review and is used
// by one goroutine. What matching had to look up or to convert for one webhook is
// kept for all others.
type Subject struct {
	Review *codec.Review
	// Object is the object as mutated so far; &Review.Object where nothing was.
	// After the first Match it is replaced by SetObject only.
	Object *codec.Object
	// ClusterName and ClusterLabels are the cluster variable of matchConditions.
	ClusterName   string
	ClusterLabels map[string]string
	Namespaces    Namespaces // nil: only kubernetes.io/metadata.name is known
	// Deadline ends the evaluation of matchConditions, all webhooks' together; zero:
	// only their own bounds do.
	Deadline time.Time

	// Turn, if not nil, is called before conditions that look into the objects are
	// evaluated, which may take long; done is called thereafter. Its error says why
	// they cannot be, before the deadline.
	Turn func() (done func(), err error)

	namespace storedNamespace
	variables *celenv.Variables // once a condition asked for them
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
	ErrNotLookedUp = errors.New("the cluster must be asked for them")
)

// storedNamespace is what is known of the review's namespace, once a webhook needed
// it: all webhooks are matched against one answer.
type storedNamespace struct {
	known  bool // also that there is an error
	labels map[string]string
	err    error
}

// SetObject makes o the object as mutated so far.
func (s *Subject) SetObject(o *codec.Object) {
	s.Object = o
	if s.variables != nil {
		s.variables.SetObject(o.Raw)
	}
}

// Forget gives up what conditions have made of the objects: it is large, and calls
// take long.
func (s *Subject) Forget() {
	if s.variables != nil {
		s.variables.Forget()
	}
}

func (s *Subject) celVariables() *celenv.Variables {
	if s.variables == nil {
		s.variables = celenv.NewVariables(celenv.Input{
			Review:        s.Review,
			Object:        s.Object.Raw,
			ClusterName:   s.ClusterName,
			ClusterLabels: s.ClusterLabels,
		})
	}
	return s.variables
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
