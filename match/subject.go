// SPDX-License-Identifier: Apache-2.0

package match

import (
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
