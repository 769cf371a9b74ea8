// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/x509"
	"net"
	"testing"

	"github.com/admission-dispatcher/dispatcher/conformance/binary"
)

// authority is a throw-away certificate authority that writes files.
type authority struct {
	*binary.Authority
	certificate *x509.Certificate
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a, err := binary.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return &authority{a, a.Certificate, a.PEM}
}

// issue writes name.crt and name.key, with name as the common name. Every
// certificate is one for 127.0.0.1 too.
func (a *authority) issue(t *testing.T, dir, name string, _ net.IP) {
	t.Helper()
	certificate, key, err := a.Issue(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, name+".crt", certificate)
	write(t, dir, name+".key", key)
}
