// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// clientCertificate authenticates to every webhook with one certificate.
type clientCertificate struct{ config *rest.Config }

// WithCertificate returns a resolver that presents a certificate to every
// webhook. All arguments are PEM.
func WithCertificate(ca, certificate, key []byte) webhook.AuthenticationInfoResolver {
	return clientCertificate{&rest.Config{
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: certificate, KeyData: key},
	}}
}

func (c clientCertificate) ClientConfigFor(string) (*rest.Config, error) { return c.config, nil }

func (c clientCertificate) ClientConfigForService(string, string, int) (*rest.Config, error) {
	return c.config, nil
}
