// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

var _ hook.Caller = (*Cluster)(nil)

// errNoNamespaces is the error where nobody can be asked.
var errNoNamespaces = errors.New("the cluster has no source of namespaces")

// StoredLabels implements hook.Caller.
func (c *Cluster) StoredLabels(namespace string, deadline time.Time) (map[string]string, error) {
	if c.Namespaces == nil {
		return nil, errNoNamespaces
	}
	labels, err := c.Namespaces.NamespaceLabels(namespace)
	if source, ok := c.Namespaces.(match.NamespaceLookup); ok && errors.Is(err, match.ErrNotLookedUp) {
		return source.LookUpNamespace(namespace, deadline)
	}
	return labels, err
}

// Version implements hook.Caller.
func (c *Cluster) Version() (major, minor int) {
	v := c.KubernetesVersion()
	return v.Major, v.Minor
}
