// SPDX-License-Identifier: Apache-2.0

package trust_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"
)

// entity is a certificate with its key.
type entity struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// keys are made once: making them is slow.
var keys = sync.OnceValue(func() []crypto.Signer {
	var list []crypto.Signer
	for range 12 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		list = append(list, key)
	}
	for range 2 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		_, edwards, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			panic(err)
		}
		list = append(list, key, edwards)
	}
	return list
})

// spec is what a certificate says.
type spec struct {
	name        string
	dns         []string
	ca          bool
	key         crypto.Signer
	expired     bool
	usage       []x509.ExtKeyUsage
	pathLen     int      // of a CA; -1: none is said
	permitted   []string // DNS names
	pointer     pointer  // at the issuer
	withoutSKID bool
}

// pointer says what a certificate's authority key id is.
type pointer uint8

const (
	right pointer = iota
	none
	wrong
)

// issue makes a certificate, by itself if issuer is nil.
func issue(t testing.TB, s spec, issuer *entity) *entity {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: s.name},
		DNSNames:     s.dns,
		NotBefore:    time.Now().Add(-48 * time.Hour),
		NotAfter:     time.Now().Add(48 * time.Hour),
		ExtKeyUsage:  s.usage,
	}
	if s.expired {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	if s.ca {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage = x509.KeyUsageCertSign
		template.MaxPathLen, template.MaxPathLenZero = s.pathLen, s.pathLen == 0
		template.PermittedDNSDomains = s.permitted
	}
	parent, signer := template, s.key
	if issuer != nil {
		c := *issuer.certificate
		c.PublicKey = nil // a forger has another
		switch s.pointer {
		case none:
			c.SubjectKeyId = nil
		case wrong:
			c.SubjectKeyId = []byte("not this one")
		case right:
		}
		parent, signer = &c, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, s.key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if s.withoutSKID {
		c.SubjectKeyId = nil
	}
	return &entity{c, s.key}
}

// fleet returns n authorities with keys of their own, and a client's certificate
// that the last has signed.
func fleet(t testing.TB, n int, name func(i int) string, p pointer) (authorities []*x509.Certificate, client *entity) {
	t.Helper()
	var last *entity
	for i := range n {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		last = issue(t, spec{name: name(i), ca: true, key: key, pathLen: -1}, nil)
		authorities = append(authorities, last.certificate)
	}
	return authorities, issue(t, spec{name: "east", key: keys()[0], usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, pointer: p}, last)
}

func equalNames(int) string { return "kubernetes" }
func distinctNames(i int) string {
	return fmt.Sprintf("a certificate authority of the cluster with the number %010d", i)
}
