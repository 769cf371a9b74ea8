// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// credentials reads the credentials and the authorities that objects bring or name,
// and checks them.
type credentials struct {
	*diagnostics
	options *Options
	in      *manifest.Input
	now     time.Time
}

// readCA returns the checked bundle in a file, and its certificates; nil where there is
// none.
func (c *credentials) readCA(at manifest.Origin, name string, path *field.Path) ([]byte, []*x509.Certificate) {
	if name == "" {
		return nil, nil
	}
	bundle, err := c.in.File(at, name)
	if err != nil {
		c.problem(unreadable(at, path, name, err))
		return nil, nil
	}
	return bundle, c.checkCA(at, path, bundle)
}

// checkCA checks a PEM bundle (E3) and returns its certificates.
func (c *credentials) checkCA(at manifest.Origin, path *field.Path, bundle []byte) []*x509.Certificate {
	certificates, err := parseCABundle(bundle)
	if err != nil {
		c.problem(at.Problem(path, "", err.Error()))
	}
	if warning := expiryWarning(certificates, c.now); warning != "" {
		c.warn(at.Problem(path, "", warning))
	}
	return certificates
}

// unreadable reports a file that cannot be read.
func unreadable(at manifest.Origin, path *field.Path, name string, err error) manifest.Problem {
	if errors.Is(err, manifest.ErrSecret) {
		name = ""
	}
	return at.Problem(path, name, manifest.UnreadableFile(err).Error())
}

// keyPair is a client certificate and its key in PEM.
type keyPair struct{ certificate, key string }

func (c *credentials) readClient(m *manifest.Binding, at *field.Path) *keyPair {
	files := m.Spec.ClientCertificate
	if files == nil {
		return nil
	}
	if files.CertFile == "" {
		c.problem(m.Problems(field.ErrorList{field.Required(at.Child("certFile"), "")})...)
	}
	if files.KeyFile == "" {
		c.problem(m.Problems(field.ErrorList{field.Required(at.Child("keyFile"), "")})...)
	}
	if files.CertFile == "" || files.KeyFile == "" {
		return nil
	}
	certificate, err := c.in.File(m.Origin, files.CertFile)
	if err != nil {
		c.problem(unreadable(m.Origin, at.Child("certFile"), files.CertFile, err))
	}
	key, keyErr := c.in.File(m.Origin, files.KeyFile)
	if keyErr != nil {
		c.problem(unreadable(m.Origin, at.Child("keyFile"), files.KeyFile, keyErr))
	}
	if err != nil || keyErr != nil {
		return nil
	}
	c.checkKeyPair(m, at, certificate, key)
	return &keyPair{string(certificate), string(key)}
}

func (c *credentials) checkKeyPair(m *manifest.Binding, at *field.Path, certificate, key []byte) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		files := m.Spec.ClientCertificate
		c.problem(m.Problem(at, files.CertFile+", "+files.KeyFile, strings.TrimPrefix(err.Error(), "tls: ")))
		return
	}
	if warning := expiryWarning([]*x509.Certificate{pair.Leaf}, c.now); warning != "" {
		c.warn(m.Problem(at.Child("certFile"), m.Spec.ClientCertificate.CertFile, warning))
	}
}

// readToken never shows the file's name in a Problem: it may be the token.
func (c *credentials) readToken(m *manifest.Binding, at *field.Path) *string {
	if m.Spec.BearerTokenFile == "" {
		return nil
	}
	token, err := c.in.Token(m.Origin, m.Spec.BearerTokenFile)
	if err != nil {
		c.problem(unreadable(m.Origin, at, "", err))
	}
	return &token
}

// readAccess returns how the API of a Cluster is reached that has a kubeconfigFile.
func (c *credentials) readAccess(m *manifest.Cluster) (a manifest.KubeAccess, ok bool) {
	a, err := c.in.Access(m)
	if err == nil {
		err = c.checkAccess(m, a)
	}
	if err != nil {
		c.problem(unusableKubeconfig(m, err))
	}
	return a, err == nil
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
func (c *credentials) checkAccess(m *manifest.Cluster, a manifest.KubeAccess) error {
	server, err := url.Parse(a.Server)
	if err != nil {
		return err // cannot be: the kubeconfig was validated
	}
	if err := forbidden(server.Hostname(), server.Port(), c.options.Addresses); err != nil {
		return fmt.Errorf("cluster.server: %w", err)
	}
	var certificates []*x509.Certificate
	if a.CA != "" {
		if certificates, err = parseCABundle([]byte(a.CA)); err != nil {
			return fmt.Errorf("certificate-authority: %w", err)
		}
	}
	if c.options.Namespaces == nil {
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

// parseCABundle returns the certificates of a PEM bundle. Text around the
// blocks is fine; any other block is not (E3).
func parseCABundle(bundle []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return nil, errors.New("holds a private key")
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a PEM block %q; only certificates belong here", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d does not parse: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("holds no PEM certificate")
	}
	return certificates, nil
}

// expirySoon is how long before its end a certificate is worth a warning.
const expirySoon = 30 * 24 * time.Hour

// expiryWarning returns what is to be said about the certificates' validity at
// now, or "".
func expiryWarning(certificates []*x509.Certificate, now time.Time) string {
	for _, c := range certificates {
		name := c.Subject.String()
		switch {
		case now.After(c.NotAfter):
			return fmt.Sprintf("certificate %q expired at %s", name, c.NotAfter.UTC().Format(time.RFC3339))
		case now.Add(expirySoon).After(c.NotAfter):
			return fmt.Sprintf("certificate %q expires at %s", name, c.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(c.NotBefore):
			return fmt.Sprintf("certificate %q is not valid before %s", name, c.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return ""
}
