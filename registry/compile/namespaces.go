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

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// namespaceName is the label that every namespace has.
const namespaceName = corev1.LabelMetadataName

// namespaces is a cluster's list of namespaces with their labels. It is
// read-only, and so are the maps that it hands out.
type namespaces struct {
	listed   map[string]map[string]string
	defaults map[string]string // nil: a namespace that is not listed is unknown
}

// NamespaceLabels implements match.Namespaces.
func (n *namespaces) NamespaceLabels(name string) (labels map[string]string, err error) {
	if labels, ok := n.listed[name]; ok {
		return labels, nil
	}
	if n.defaults == nil {
		return nil, match.ErrNoNamespace
	}
	return namedLabels(name, n.defaults), nil
}

func namedLabels(name string, labels map[string]string) map[string]string {
	named := make(map[string]string, len(labels)+1)
	maps.Copy(named, labels)
	named[namespaceName] = name
	return named
}

// compileNamespaces returns the list as matching reads it; nil where there is
// none.
func compileNamespaces(list *manifest.NamespaceList) match.Namespaces {
	if list == nil {
		return nil
	}
	n := &namespaces{listed: make(map[string]map[string]string, len(list.Labels)), defaults: list.DefaultLabels}
	for name, labels := range list.Labels {
		n.listed[name] = namedLabels(name, labels)
	}
	return n
}

func validateNamespaces(list *manifest.NamespaceList, at *field.Path) field.ErrorList {
	if list == nil {
		return nil
	}
	errs := validateNamespaceLabels(list.DefaultLabels, "", at.Child("defaultLabels"))
	for _, name := range slices.Sorted(maps.Keys(list.Labels)) {
		here := at.Child("labels").Key(name)
		for _, reason := range utilvalidation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(here, name, reason))
		}
		errs = append(errs, validateNamespaceLabels(list.Labels[name], name, here)...)
	}
	return errs
}

func validateNamespaceLabels(labels map[string]string, name string, at *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, at)
	if said, ok := labels[namespaceName]; ok && said != name {
		errs = append(errs, field.Invalid(at.Key(namespaceName), said, "is always the namespace's own name"))
	}
	return errs
}

// checkNamespaces refuses a webhook whose namespaceSelector needs labels that
// nobody supplies for a cluster that it serves (E9).
func (c *compiler) checkNamespaces(e *entry, g *group) {
	keys := e.matcher.NeededLabels()
	if len(keys) == 0 {
		return
	}
	var without []string
	for _, cluster := range g.clusters {
		if cluster.Namespaces == nil {
			without = append(without, "Cluster/"+cluster.Name)
		}
	}
	if len(without) > 0 {
		c.problem(e.configuration.Problem(e.path.Child("namespaceSelector"), strings.Join(keys, ", "),
			fmt.Sprintf("needs labels that nobody supplies: neither spec.namespaces nor spec.kubeconfigFile is set in %s", enumerate(without))))
	}
}

// enumerated is how many names a Problem spells out.
const enumerated = 5

func enumerate(names []string) string {
	if len(names) <= enumerated {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "), len(names)-enumerated)
}

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
	a, err := c.in.Access(m)
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
// with the labels that its webhooks' selectors name, and returns them. A webhook that waits for its
// Target keeps its previous version in the chain, so the labels that the current
// one names count too.
func (c *compiler) compileSources() (sources []chain.NamespaceSource) {
	if c.Namespaces == nil {
		return nil
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
		source := c.Namespaces(cluster.Name, a, slices.Sorted(maps.Keys(keys)))
		cluster.Namespaces = source
		sources = append(sources, source)
	}
	return sources
}
