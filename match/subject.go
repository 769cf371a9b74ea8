// SPDX-License-Identifier: Apache-2.0

package match

import (
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Subject is what webhooks are matched against. It is used by one goroutine.
type Subject struct {
	Review *codec.Review
	// Object is the object as mutated so far; &Review.Object where nothing was.
	// After the first Match it is replaced by SetObject only.
	Object *codec.Object
	// ClusterName and ClusterLabels are the cluster variable of matchConditions.
	ClusterName   string
	ClusterLabels map[string]string
	Namespaces    Namespaces // nil: only kubernetes.io/metadata.name is known

	variables    *celenv.Variables // of Object, once a condition asked for them
	variablesErr error
}

// SetObject makes o the object as mutated so far.
func (s *Subject) SetObject(o *codec.Object) {
	s.Object = o
	s.variables, s.variablesErr = nil, nil
}

// celVariables decodes the objects at most once per object.
func (s *Subject) celVariables() (*celenv.Variables, error) {
	if s.variables == nil && s.variablesErr == nil {
		s.variables, s.variablesErr = celenv.NewVariables(celenv.Input{
			Review:        s.Review,
			Object:        s.Object.Raw,
			ClusterName:   s.ClusterName,
			ClusterLabels: s.ClusterLabels,
		})
	}
	return s.variables, s.variablesErr
}

// Namespaces tells the labels of a cluster's namespaces. ok is false for a
// namespace that the source does not know.
type Namespaces interface {
	NamespaceLabels(name string) (labels map[string]string, ok bool)
}
