// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// Caller is what is known of the cluster that asks, beside its name and labels. It may ask
// the cluster, and returns well before the deadline. An error says, to the user whose
// request it is, why something is not known.
type Caller interface {
	// StoredLabels returns the labels of a stored namespace, of which only those are sure to
	// be there that a Hook's Entry or a selector names. The labels are read only.
	StoredLabels(namespace string, deadline time.Time) (map[string]string, error)
	// Version is the Kubernetes version of the cluster's API servers; zero if it is not
	// known.
	Version() (major, minor int)
	// Objects returns the objects of a resource that a Hook's Entry names; nil: the cluster
	// has no source of them.
	Objects(resource schema.GroupVersionResource) Objects
	// Kinds returns the types of the cluster's kinds; nil: it has no source of them, or no
	// Hook's Entry needs one.
	Kinds() Kinds
	// Authorize asks the cluster's authorizer, if a Hook's Entry does. An answer of late may
	// serve: an allow for 5 min, any other for 30 s.
	Authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, error)
}

// Kinds are the types of the kinds that a cluster serves, as it publishes them. They are
// safe for concurrent use.
type Kinds interface {
	// Types returns the types of a group and version. The error says why they are not known.
	Types(of schema.GroupVersion, deadline time.Time) (*policyschema.Types, error)
}

// ErrNotAsked is the error of what a cluster would have to be asked for where nobody asks
// any, such as for an explanation.
var ErrNotAsked = errors.New("the cluster was not asked")

// Objects are what a cluster stores of one resource, as a watch brings it. They are safe for
// concurrent use. An error says that they are not known, never that there are none.
type Objects interface {
	// Get returns the object of the name; nil: there is none. The namespace of one that is in
	// none is "".
	Get(namespace, name string, deadline time.Time) (*Stored, error)
	// List returns the objects in a namespace, or with "" in all, in the order of their
	// namespaces and names. The list is the caller's, and what it refers to is read only.
	List(namespace string, deadline time.Time) ([]*Stored, error)
}

// Stored is one version of an object that a cluster stores. It is read only, and safe for
// concurrent use.
type Stored struct {
	Namespace, Name string
	Labels          map[string]string
	JSON            []byte // whole, but for metadata.managedFields
	made            memo
}

// Once returns what create returned for key when somebody first asked for it about this
// version of the object. Nobody writes to it. It lives as long as the object.
func (s *Stored) Once(key any, create func() (any, error)) (any, error) {
	return s.made.get(key, create)
}
