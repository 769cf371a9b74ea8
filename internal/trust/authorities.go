// SPDX-License-Identifier: Apache-2.0

// Package trust verifies client certificates against many certificate
// authorities, at a cost that does not grow with their number.
package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
)

// Authorities is an immutable set of certificate authorities. A nil set is
// empty.
type Authorities struct {
	families map[string]*family      // by raw subject
	byKey    map[string][]*authority // by raw public key
}

// authority is one name with one key. It has several certificates where it was
// renewed, and each of them may be the valid one.
type authority struct {
	subject, key []byte // raw
	certificates []*x509.Certificate
}

// family is the authorities of one name.
type family struct {
	authorities []*authority
	byKeyID     map[string][]*authority
}

// NewAuthorities returns the set of the given certificates.
func NewAuthorities(certificates []*x509.Certificate) *Authorities {
	set := &Authorities{families: map[string]*family{}, byKey: map[string][]*authority{}}
	for _, c := range certificates {
		set.add(c)
	}
	return set
}

func (s *Authorities) add(c *x509.Certificate) {
	f := s.families[string(c.RawSubject)]
	if f == nil {
		f = &family{byKeyID: map[string][]*authority{}}
		s.families[string(c.RawSubject)] = f
	}
	a := s.find(c.RawSubject, c.RawSubjectPublicKeyInfo)
	if a == nil {
		a = &authority{subject: c.RawSubject, key: c.RawSubjectPublicKeyInfo}
		f.authorities = append(f.authorities, a)
		s.byKey[string(a.key)] = append(s.byKey[string(a.key)], a)
	}
	a.certificates = append(a.certificates, c)
	if id := string(c.SubjectKeyId); id != "" {
		f.byKeyID[id] = append(f.byKeyID[id], a) // twice for a renewed one, which costs nothing
	}
}

// find returns the authority of that name and key, or nil.
func (s *Authorities) find(subject, key []byte) *authority {
	if s == nil {
		return nil
	}
	for _, a := range s.byKey[string(key)] {
		if bytes.Equal(a.subject, subject) {
			return a
		}
	}
	return nil
}

// named returns the authorities whose name issued c, or nil.
func (s *Authorities) named(c *x509.Certificate) *family {
	if s == nil {
		return nil
	}
	return s.families[string(c.RawIssuer)]
}

// likely returns those of the family that c itself points at by its authority
// key id.
func (f *family) likely(c *x509.Certificate) []*authority {
	if f == nil || len(c.AuthorityKeyId) == 0 {
		return nil
	}
	return f.byKeyID[string(c.AuthorityKeyId)]
}

// others returns all of the family. Key ids only order the search: a wrong one
// makes no certificate invalid.
func (f *family) others() []*authority {
	if f == nil {
		return nil
	}
	return f.authorities
}

// fits reports whether the signature on c can be by the key of a at all. It
// costs nothing, where checking a signature does.
func (a *authority) fits(c *x509.Certificate) bool {
	switch key := a.certificates[0].PublicKey.(type) {
	case *rsa.PublicKey:
		return len(c.Signature) == key.Size()
	case *ecdsa.PublicKey:
		return c.SignatureAlgorithm >= x509.ECDSAWithSHA1 && c.SignatureAlgorithm <= x509.ECDSAWithSHA512
	case ed25519.PublicKey:
		return c.SignatureAlgorithm == x509.PureEd25519
	}
	return false
}

// signed reports whether the key of a made the signature on c. Whether a may
// sign at all is for Verify to say.
func (a *authority) signed(c *x509.Certificate) bool {
	return a.certificates[0].CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}
