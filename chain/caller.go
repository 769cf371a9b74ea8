// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

var _ hook.KnownCaller = (*Cluster)(nil)

// errNoNamespaces is the error where nobody can be asked.
var errNoNamespaces = errors.New("the cluster has no source of namespaces")

// StoredLabels implements hook.Caller.
func (c *Cluster) StoredLabels(namespace string, deadline time.Time) (map[string]string, error) {
	labels, err := c.KnownLabels(namespace)
	if source, ok := c.Namespaces.(match.NamespaceLookup); ok && errors.Is(err, match.ErrNotLookedUp) {
		return source.LookUpNamespace(namespace, deadline)
	}
	return labels, err
}

// KnownLabels implements hook.KnownCaller.
func (c *Cluster) KnownLabels(namespace string) (map[string]string, error) {
	if c.Namespaces == nil {
		return nil, errNoNamespaces
	}
	return c.Namespaces.NamespaceLabels(namespace)
}

// Version implements hook.Caller.
func (c *Cluster) Version() (major, minor int) {
	v := c.KubernetesVersion()
	return v.Major, v.Minor
}

// Objects implements hook.Caller.
func (c *Cluster) Objects(resource schema.GroupVersionResource) hook.Objects {
	if stored, ok := c.Stored[resource]; ok {
		return stored
	}
	return nil
}

// Kinds implements hook.Caller.
func (c *Cluster) Kinds() hook.Kinds { return c.Types }

var errNoAuthorizer = errors.New("the cluster has no authorizer that could be asked")

// Authorize implements hook.Caller.
func (c *Cluster) Authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	if c.Authorizer == nil {
		return authorizationv1.SubjectAccessReviewStatus{}, errNoAuthorizer
	}
	return c.Authorizer.Authorize(access, deadline)
}

// KnownAccess implements hook.KnownCaller.
func (c *Cluster) KnownAccess(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	if c.Authorizer == nil {
		return authorizationv1.SubjectAccessReviewStatus{}, errNoAuthorizer
	}
	if known, ok := c.Authorizer.(KnownAuthorizer); ok {
		return known.Known(access)
	}
	return authorizationv1.SubjectAccessReviewStatus{}, hook.ErrNotLookedUp
}
