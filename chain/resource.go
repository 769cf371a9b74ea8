// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// A Resource is what a Snapshot uses and what outlives it: a Target with its
// connections and circuits, a watch on the namespaces of a cluster. It is made when
// a configuration is compiled, and does nothing until the registry opens it. The
// registry closes it when no Snapshot has it any more.
//
// The interface is here and not in registry, because those who make Resources stand
// below the registry, which only keeps them.
type Resource interface {
	// Identity tells it from all others: of one Identity one Resource is alive.
	Identity() string
	// Open starts it, and returns when it is of use, or could not be, or ctx is done.
	// It is called once, before anything else of it is used.
	Open(ctx context.Context)
	// Ready returns nil if it answers, and otherwise why it does not, in bounded time.
	// With a DryRun, which may be nil, it answers that too. The error shows no secret.
	Ready(*DryRun) error
	// Busy reports whether calls are under way. It does not block.
	Busy() bool
	// Close ends what Open has begun and waits for its end. It is called once, when no
	// Snapshot has the Resource and it is not Busy.
	Close()
	// String names it in logs.
	String() string
}

// Served is a Hook that answers only while a Resource does. A Hook that is not one needs
// nothing: it takes part at once.
type Served interface {
	ServedBy() string // the Resource's Identity
}

// A DryRun is a review that a webhook is to answer before it takes part (probe:
// Review), as this webhook of this cluster.
type DryRun struct {
	Cluster string
	Phase   Phase
	Webhook *Entry
}

// NamespaceSource is a source of namespaces that has to be kept current.
type NamespaceSource interface {
	match.Namespaces
	Resource
}

// KnownAuthorizer is an Authorizer that knows some of its answers without a request to the
// cluster. The error is hook.ErrNotLookedUp for others.
type KnownAuthorizer interface {
	Known(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

// AuthorizerSource is an Authorizer that asks a cluster.
type AuthorizerSource interface {
	Authorizer
	Resource
}

// KindSource is a source of the types of a cluster's kinds that has to be kept current.
type KindSource interface {
	hook.Kinds
	Resource
}

// ObjectSource is a source of the objects of a resource that has to be kept current.
type ObjectSource interface {
	hook.Objects
	Resource
}
