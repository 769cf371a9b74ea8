// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/match"
)

// KubeAccess is how the API of a cluster is reached: everything that its
// kubeconfig says, with the content of the files that it names. Two that are
// equal are the same access.
type KubeAccess struct {
	Server           string // https URL
	ServerName       string // that the certificate must have; empty: the host in Server
	CA               string // PEM; empty: the system's trust roots
	Certificate, Key string // PEM; empty: none is presented
	Token            string // empty: none
}

// String returns the server: what is printed holds no credential.
func (a KubeAccess) String() string { return a.Server }

// GoString is String.
func (a KubeAccess) GoString() string { return a.String() }

// nobodyAsked is the source of namespaces where no cluster is contacted.
type nobodyAsked struct{}

var errNobodyAsked = errors.New("the cluster was not asked")

// NamespaceLabels implements match.Namespaces.
func (nobodyAsked) NamespaceLabels(string, time.Time) (labels map[string]string, err error) {
	return nil, errNobodyAsked
}

// compileSource returns the cluster's source of namespaces; nil where there is
// none.
func (c *compiler) compileSource(m *clusterManifest) match.Namespaces {
	if m.Spec.KubeconfigFile == "" {
		return compileNamespaces(m.Spec.Namespaces)
	}
	access, err := c.readAccess(m)
	switch {
	case err != nil:
		c.problem(unusableKubeconfig(m, err))
		return nil
	case c.settings.Namespaces == nil:
		return nobodyAsked{}
	}
	return c.settings.Namespaces(m.Name, access)
}

func unusableKubeconfig(m *clusterManifest, err error) Problem {
	at, name := field.NewPath("spec", "kubeconfigFile"), m.Spec.KubeconfigFile
	if errors.Is(err, errSecret) {
		name = ""
	}
	return m.problem(at, name, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// readAccess reads the kubeconfig and all that it names.
func (c *compiler) readAccess(m *clusterManifest) (KubeAccess, error) {
	name := m.Spec.KubeconfigFile
	data, err := c.files.read(m.origin, name)
	if err != nil {
		return KubeAccess{}, unreadableFile(err)
	}
	k, err := parseKubeconfig(data)
	if err != nil {
		return KubeAccess{}, err
	}
	r := accessReader{files: c.files, at: origin{file: resolvePath(m.origin, name)}}
	access := KubeAccess{
		Server:      k.cluster.Server,
		ServerName:  k.cluster.TLSServerName,
		CA:          r.content("certificate-authority", k.cluster.CA, k.cluster.CAData),
		Certificate: r.content("client-certificate", k.user.Certificate, k.user.CertificateData),
		Key:         r.content("client-key", k.user.Key, k.user.KeyData),
		Token:       r.token(&k.user),
	}
	if r.err != nil {
		return KubeAccess{}, r.err
	}
	return access, c.checkAccess(m, access)
}

// checkAccess checks that the certificates are whole and warns of their end.
func (c *compiler) checkAccess(m *clusterManifest, a KubeAccess) error {
	var certificates []*x509.Certificate
	if a.CA != "" {
		authorities, err := parseCABundle([]byte(a.CA))
		if err != nil {
			return fmt.Errorf("certificate-authority: %w", err)
		}
		certificates = authorities
	}
	if a.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
		if err != nil {
			return fmt.Errorf("client-certificate: %s", strings.TrimPrefix(err.Error(), "tls: "))
		}
		certificates = append(certificates, pair.Leaf)
	}
	if warning := expiryWarning(certificates, c.now); warning != "" {
		c.warn(m.problem(field.NewPath("spec", "kubeconfigFile"), m.Spec.KubeconfigFile, warning))
	}
	return nil
}

func unreadableFile(err error) error {
	if errors.Is(err, errSecret) {
		return err
	}
	return fmt.Errorf("cannot be read: %w", cause(err))
}

// kubeconfigReferences returns the files that the objects' kubeconfigs name.
// What is wrong with them is found again when they are compiled.
func (o *objects) kubeconfigReferences(read files) []string {
	var paths []string
	for i := range o.clusters {
		m := &o.clusters[i]
		if m.Spec.KubeconfigFile == "" {
			continue
		}
		path := resolvePath(m.origin, m.Spec.KubeconfigFile)
		k, err := parseKubeconfig(read[path].data)
		if err != nil {
			continue
		}
		for _, name := range k.references() {
			paths = append(paths, resolvePath(origin{file: path}, name))
		}
	}
	return paths
}
