// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// readCA returns the checked bundle in a file; nil where there is none.
func (c *compiler) readCA(at manifest.Origin, name string, path *field.Path) []byte {
	if name == "" {
		return nil
	}
	bundle, err := c.in.File(at, name)
	if err != nil {
		c.problem(unreadable(at, path, name, err))
		return nil
	}
	c.checkCA(at, path, bundle)
	return bundle
}

// checkCA checks a PEM bundle (E3) and returns its certificates.
func (c *compiler) checkCA(at manifest.Origin, path *field.Path, bundle []byte) []*x509.Certificate {
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

func (c *compiler) readClient(m *manifest.Binding, at *field.Path) *keyPair {
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

func (c *compiler) checkKeyPair(m *manifest.Binding, at *field.Path, certificate, key []byte) {
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
func (c *compiler) readToken(m *manifest.Binding, at *field.Path) *string {
	if m.Spec.BearerTokenFile == "" {
		return nil
	}
	token, err := c.in.Token(m.Origin, m.Spec.BearerTokenFile)
	if err != nil {
		c.problem(unreadable(m.Origin, at, "", err))
	}
	return &token
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
