// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"
)

// sign makes a certificate of "east" by an authority "kubernetes", without a key
// id.
func sign(t *testing.T, serial int64, authority bool, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "east"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	parent := &x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes"}}
	if authority {
		template.Subject, template.IsCA, template.BasicConstraintsValid = parent.Subject, true, true
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A stranger spends what may be spent on searching, and no more; what it costs
// each client is bounded then, and whoever is remembered is verified as ever.
func TestStrangersSpendTheirShare(t *testing.T) {
	const authorities = 100
	var all []*x509.Certificate
	var last *ecdsa.PrivateKey
	for range authorities {
		last = newKey(t)
		all = append(all, sign(t, 1, true, last))
	}
	sets := Sets{Process: NewAuthorities(all)}
	now := time.Now()
	v := NewVerifier()
	v.search.now = func() time.Time { return now }
	v.search.checks = 250
	verify := func(c *x509.Certificate) error {
		_, err := v.Verify([]*x509.Certificate{c}, sets)
		return err
	}
	known, late := sign(t, 2, false, last), sign(t, 3, false, last)
	if err := verify(known); err != nil {
		t.Fatal(err)
	}
	if v.search.checks != 250 {
		t.Errorf("%v checks are left: a search that finds a signer is paid for", v.search.checks)
	}
	stranger := newKey(t)
	for i := range 10 {
		if err := verify(sign(t, int64(10+i), false, stranger)); err == nil {
			t.Fatal("a stranger is verified")
		}
	}
	if v.search.checks != 0 {
		t.Errorf("%v checks are left", v.search.checks)
	}
	if err := verify(known); err != nil {
		t.Errorf("who is remembered: %v", err)
	}
	if err := verify(late); err == nil {
		t.Error("a search is made with nothing left")
	}
	now = now.Add(time.Second)
	if err := verify(late); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

// An authority that signs certificate after certificate pays for its searches,
// and displaces nobody else's.
func TestOneAuthorityKeepsToItself(t *testing.T) {
	var all []*x509.Certificate
	quiet := newKey(t)
	all = append(all, sign(t, 1, true, quiet))
	for range 40 {
		all = append(all, sign(t, 1, true, newKey(t)))
	}
	busy := newKey(t)
	all = append(all, sign(t, 1, true, busy))
	v, sets := NewVerifier(), Sets{Process: NewAuthorities(all)}
	now := time.Now()
	v.search.now = func() time.Time { return now }
	of := sign(t, 2, false, quiet)
	if _, err := v.Verify([]*x509.Certificate{of}, sets); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * perKey {
		if _, err := v.Verify([]*x509.Certificate{sign(t, int64(100+i), false, busy)}, sets); err != nil {
			t.Fatal(err)
		}
	}
	if v.signers.recall(of) == "" {
		t.Error("the other authority's certificate is forgotten")
	}
	if got := len(v.signers.keys); got != 1+perKey {
		t.Errorf("%d certificates are remembered, want %d", got, 1+perKey)
	}
	if want := float64(searchBurst - 2*perKey*(42-freeChecks)); v.search.checks != want {
		t.Errorf("%v checks are left, want %v", v.search.checks, want)
	}
}
