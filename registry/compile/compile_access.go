// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// nobodyAsked is the source of namespaces where no cluster is contacted.
type nobodyAsked struct{}

var errNobodyAsked = errors.New("the cluster was not asked")

// NamespaceLabels implements match.Namespaces.
func (nobodyAsked) NamespaceLabels(string) (labels map[string]string, err error) {
	return nil, errNobodyAsked
}

// compileNamespaceSource returns the cluster's source of namespaces; nil where
// there is none. For a cluster's API compileSources replaces it, once the labels
// are known that are needed of it.
func (c *compiler) compileNamespaceSource(m *manifest.Cluster) match.Namespaces {
	if m.Spec.KubeconfigFile == "" {
		return compileNamespaces(m.Spec.Namespaces)
	}
	a, err := c.access(m)
	if err == nil {
		err = c.checkAccess(m, a)
	}
	if err != nil {
		c.problem(unusableKubeconfig(m, err))
		return nil
	}
	c.accesses[m.Name] = a
	return nobodyAsked{}
}

func (c *compiler) access(m *manifest.Cluster) (manifest.KubeAccess, error) {
	if manifest.LooksSecret(m.Spec.KubeconfigFile) {
		return manifest.KubeAccess{}, manifest.ErrSecret
	}
	found := c.kubeconfigs[m.Refer(m.Spec.KubeconfigFile)]
	return found.KubeAccess, found.Err
}

func unusableKubeconfig(m *manifest.Cluster, err error) manifest.Problem {
	at, name := field.NewPath("spec", "kubeconfigFile"), m.Spec.KubeconfigFile
	if errors.Is(err, manifest.ErrSecret) {
		name = ""
	}
	return m.Problem(at, name, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// checkAccess checks where the API is, and warns of what may change without a new
// configuration: certificates that expire, and, where nobody uses the credential
// and says so, one that is not good.
func (c *compiler) checkAccess(m *manifest.Cluster, a manifest.KubeAccess) error {
	server, err := url.Parse(a.Server)
	if err != nil {
		return err // cannot be: the kubeconfig was validated
	}
	if err := forbidden(server.Hostname(), server.Port(), c.Addresses); err != nil {
		return fmt.Errorf("cluster.server: %w", err)
	}
	var certificates []*x509.Certificate
	if a.CA != "" {
		if certificates, err = parseCABundle([]byte(a.CA)); err != nil {
			return fmt.Errorf("certificate-authority: %w", err)
		}
	}
	if c.Namespaces == nil {
		credential, err := manifest.NewCredentials(a).Current()
		if err != nil {
			c.warn(unusableKubeconfig(m, err))
		}
		if credential.Certificate != nil {
			certificates = append(certificates, credential.Certificate.Leaf)
		}
	}
	if warning := expiryWarning(certificates, c.now); warning != "" {
		c.warn(m.Problem(field.NewPath("spec", "kubeconfigFile"), m.Spec.KubeconfigFile, warning))
	}
	return nil
}

// compileSources gives each cluster that has an API the source of its namespaces,
// with the labels that its webhooks' selectors name. A webhook that waits for its
// Target keeps its previous version in the chain, so the labels that the current
// one names count too.
func (c *compiler) compileSources() {
	if c.Namespaces == nil {
		return
	}
	for _, cluster := range c.clusters {
		a, ok := c.accesses[cluster.Name]
		if !ok {
			continue
		}
		keys := map[string]bool{}
		cluster.SelectedLabels(keys)
		if c.current != nil {
			if before := c.current.Clusters[cluster.Name]; before != nil {
				before.SelectedLabels(keys)
			}
		}
		cluster.Namespaces = c.Namespaces(cluster.Name, a, slices.Sorted(maps.Keys(keys)))
	}
}
