// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/x509"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// certificateStatus returns the certificates of both listeners as they are used.
func (a *App) certificateStatus() []status.Certificate {
	list := a.certificates.status()
	if a.adminCertificates != nil {
		list = append(list, a.adminCertificates.status()...)
	}
	return list
}

// status returns the serving certificate and the authorities of clients.
func (c *certificates) status() []status.Certificate {
	refused := ""
	if why := c.refused.Load(); why != nil {
		refused = *why
	}
	used := c.current.Load()
	list := []status.Certificate{newCertificateStatus(c.listener.name+" serving", c.files.CertFile, refused, used.tls.Certificates[0].Leaf)}
	for _, ca := range used.authorities {
		list = append(list, newCertificateStatus(c.listener.name+" client authority", c.files.ClientCAFile, "", ca))
	}
	return list
}

func newCertificateStatus(role, file, refused string, c *x509.Certificate) status.Certificate {
	return status.Certificate{
		Role:      role,
		File:      file,
		Subject:   c.Subject.String(),
		NotBefore: c.NotBefore.UTC(),
		NotAfter:  c.NotAfter.UTC(),
		Refused:   refused,
	}
}
