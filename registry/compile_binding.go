// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// endpointsKey is a list of endpoints by content; "" is none.
type endpointsKey string

// compileBindings compiles every binding that is valid on its own.
func (c *compiler) compileBindings() {
	for i := range c.objects.bindings {
		m := &c.objects.bindings[i]
		before := len(c.problems)
		c.problem(m.problems(validateBinding(&m.WebhookBindingObject, c.settings.Addresses))...)
		b := &binding{bindingManifest: m, says: c.compileDispatch(m)}
		if len(c.problems) > before {
			continue
		}
		selector, err := clusterSelector(m.Spec.ClusterSelector)
		if err != nil {
			c.problem(m.problem(field.NewPath("spec", "clusterSelector"), "", err.Error()))
			continue
		}
		b.clusters = selector
		c.bindings = append(c.bindings, b)
	}
}

// compileDispatch reads what the binding says, and the files that it names.
func (c *compiler) compileDispatch(m *bindingManifest) partialDispatch {
	spec := &m.Spec
	says := partialDispatch{
		mode:      modeOf(spec.Mode),
		stage:     stageOf(spec.Stage),
		compat:    compatibilityOf(spec.Compatibility),
		order:     spec.Order,
		endpoints: c.compileEndpoints(m),
		client:    c.compileClient(m),
		token:     c.compileToken(m),
	}
	if spec.Timeout != nil {
		says.timeout = &spec.Timeout.Duration
	}
	return says
}

func modeOf(s string) *Mode {
	switch s {
	case "":
		return nil
	case "Warn":
		return new(Warn)
	case "Shadow":
		return new(Shadow)
	}
	return new(Enforce)
}

func stageOf(s string) *Stage {
	switch s {
	case "":
		return nil
	case "Transactional":
		return new(StageTransactional)
	}
	return new(StageValidating)
}

func compatibilityOf(s string) *codec.Compatibility {
	switch s {
	case "":
		return nil
	case "APIServer":
		return new(codec.APIServer)
	}
	return new(codec.Strict)
}

func (c *compiler) compileEndpoints(m *bindingManifest) *endpointsKey {
	if len(m.Spec.Endpoints) == 0 {
		return nil
	}
	var key strings.Builder
	specs := make([]webhook.EndpointSpec, len(m.Spec.Endpoints))
	for i, e := range m.Spec.Endpoints {
		at := field.NewPath("spec", "endpoints").Index(i).Child("caFile")
		specs[i] = webhook.EndpointSpec{Address: e.Address, ServerName: e.ServerName, CABundle: c.readCA(m.origin, e.CAFile, at)}
		for _, part := range []string{e.Address, e.ServerName, string(specs[i].CABundle)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	k := endpointsKey(key.String())
	c.endpoints[k] = specs
	return &k
}

// readCA returns the checked bundle in a file; nil where there is none.
func (c *compiler) readCA(at origin, name string, path *field.Path) []byte {
	if name == "" {
		return nil
	}
	bundle, err := c.files.read(at, name)
	if err != nil {
		c.problem(unreadable(at, path, name, err))
		return nil
	}
	c.checkCA(at, path, bundle)
	return bundle
}

// checkCA checks a PEM bundle (E3) and returns its certificates.
func (c *compiler) checkCA(at origin, path *field.Path, bundle []byte) []*x509.Certificate {
	certificates, err := parseCABundle(bundle)
	if err != nil {
		c.problem(at.problem(path, "", err.Error()))
	}
	if warning := expiryWarning(certificates, c.now); warning != "" {
		c.warn(at.problem(path, "", warning))
	}
	return certificates
}

// unreadable reports a file that cannot be read.
func unreadable(at origin, path *field.Path, name string, err error) Problem {
	if errors.Is(err, errSecret) {
		return at.problem(path, "", err.Error())
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return at.problem(path, name, "cannot be read: "+err.Error())
}

func (c *compiler) compileClient(m *bindingManifest) *keyPair {
	files := m.Spec.ClientCertificate
	if files == nil || files.CertFile == "" || files.KeyFile == "" {
		return nil
	}
	at := field.NewPath("spec", "clientCertificate")
	certificate, err := c.files.read(m.origin, files.CertFile)
	if err != nil {
		c.problem(unreadable(m.origin, at.Child("certFile"), files.CertFile, err))
	}
	key, keyErr := c.files.read(m.origin, files.KeyFile)
	if keyErr != nil {
		c.problem(unreadable(m.origin, at.Child("keyFile"), files.KeyFile, keyErr))
	}
	if err != nil || keyErr != nil {
		return nil
	}
	c.checkKeyPair(m, at, certificate, key)
	return &keyPair{string(certificate), string(key)}
}

func (c *compiler) checkKeyPair(m *bindingManifest, at *field.Path, certificate, key []byte) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		files := m.Spec.ClientCertificate
		c.problem(m.problem(at, files.CertFile+", "+files.KeyFile, strings.TrimPrefix(err.Error(), "tls: ")))
		return
	}
	if warning := expiryWarning([]*x509.Certificate{pair.Leaf}, c.now); warning != "" {
		c.warn(m.problem(at.Child("certFile"), m.Spec.ClientCertificate.CertFile, warning))
	}
}

// compileToken never shows the file's name in a Problem: it may be the token.
func (c *compiler) compileToken(m *bindingManifest) *string {
	if m.Spec.BearerTokenFile == "" {
		return nil
	}
	token, err := c.files.readToken(m.origin, m.Spec.BearerTokenFile)
	if err != nil {
		c.problem(unreadable(m.origin, field.NewPath("spec", "bearerTokenFile"), "", err))
	}
	return &token
}
