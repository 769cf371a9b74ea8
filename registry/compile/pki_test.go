// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// authority is a throw-away CA.
type authority struct {
	t *testing.T
	*pki.Authority
}

func newAuthority(t *testing.T, name string, expires time.Time) authority {
	t.Helper()
	a, err := pki.NewAuthorityUntil(name, expires)
	if err != nil {
		t.Fatal(err)
	}
	return authority{t, a}
}

// again returns an authority of that name with the same key.
func (a authority) again(name string) authority {
	a.t.Helper()
	again, err := a.Again(name, a.Certificate.NotAfter)
	if err != nil {
		a.t.Fatal(err)
	}
	return authority{a.t, again}
}

// chain returns the verified chain of a client with these names.
func (a authority) chain(commonName string, dnsNames []string, uris ...string) [][]*x509.Certificate {
	a.t.Helper()
	pair, err := a.Issue(pki.Subject{CommonName: commonName, DNSNames: dnsNames, URIs: uris})
	if err != nil {
		a.t.Fatal(err)
	}
	client, err := pair.TLS()
	if err != nil {
		a.t.Fatal(err)
	}
	return [][]*x509.Certificate{{client.Leaf, a.Certificate}}
}

func (a authority) pem() string { return string(a.PEM) }

func (a authority) keyPEM() string {
	a.t.Helper()
	own, err := a.Own()
	if err != nil {
		a.t.Fatal(err)
	}
	return string(own.Key)
}
