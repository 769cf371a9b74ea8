// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"slices"
	"time"
)

// Chains are the verified chains of a client certificate, leaf first.
type Chains struct {
	// Process lead to an authority of every cluster, Cluster to one that belongs
	// to the clusters whose name the certificate bears.
	Process, Cluster [][]*x509.Certificate
}

// Leaf returns the client's own certificate, or nil if there is none.
func (c *Chains) Leaf() *x509.Certificate {
	switch {
	case len(c.Process) > 0 && len(c.Process[0]) > 0:
		return c.Process[0][0]
	case len(c.Cluster) > 0 && len(c.Cluster[0]) > 0:
		return c.Cluster[0][0]
	}
	return nil
}

// Sets are the authorities that may vouch for one client certificate.
type Sets struct {
	Process *Authorities   // nil: none of the process's may
	Cluster []*Authorities // of the clusters whose names it bears
	// Renewed has further certificates of the authorities in Cluster, where there
	// are any.
	Renewed *Authorities
}

func (s *Sets) each(do func(*Authorities)) {
	for _, set := range s.Cluster {
		do(set)
	}
	do(s.Process)
}

// maxLinks bounds the certificates of one client that take part, its own
// included. Others are left out, as if they had not been sent.
const maxLinks = 16

// Verifier verifies client certificates as crypto/tls does, and remembers who
// signed them. It is safe for concurrent use.
//
// x509.Certificate.Verify tries every authority of the issuer's name, a
// signature check each, and gives up after 100. An authority that has signed none
// of the certificates that the client sent is in no chain, so the Verifier first
// finds those that have, and has Verify judge with these alone.
type Verifier struct {
	signers *memory
	search  *search
}

// NewVerifier returns a Verifier.
func NewVerifier() *Verifier {
	return &Verifier{signers: newMemory(), search: newSearch()}
}

// Verify returns the chains of what a client sent, its own certificate first.
func (v *Verifier) Verify(sent []*x509.Certificate, sets Sets) (Chains, error) {
	if len(sent) == 0 {
		return Chains{}, errors.New("no client certificate")
	}
	a := attempt{verifier: v, sets: sets, links: links(sent), signers: map[*x509.Certificate]*authority{}}
	a.pointed()
	chains, all, err := a.judge()
	if all || !a.searched() {
		return chains, err
	}
	chains, _, err = a.judge()
	return chains, err
}

// links returns what can be in a chain from the first certificate, as far as the
// names say.
func links(sent []*x509.Certificate) []*x509.Certificate {
	found := []*x509.Certificate{sent[0]}
	for i := 0; i < len(found); i++ {
		for _, c := range sent[1:] {
			if len(found) == maxLinks {
				return found
			}
			if bytes.Equal(c.RawSubject, found[i].RawIssuer) && !slices.ContainsFunc(found, c.Equal) {
				found = append(found, c)
			}
		}
	}
	return found
}

// attempt is the verification of one client.
type attempt struct {
	verifier *Verifier
	sets     Sets
	links    []*x509.Certificate
	signers  map[*x509.Certificate]*authority // of links
	checks   int                              // signature checks so far
	// displaced is set when what was found took the place of an older one.
	displaced bool
}

// pointed finds the signers that are remembered, or that the certificates point
// at by key id.
func (a *attempt) pointed() {
	for _, c := range a.links {
		if signer := a.remembered(c); signer != nil {
			a.signers[c] = signer
			continue
		}
		a.sets.each(func(s *Authorities) {
			a.try(c, s.named(c).likely(c), a.free)
		})
	}
}

func (a *attempt) remembered(c *x509.Certificate) (signer *authority) {
	key := a.verifier.signers.recall(c)
	if key == "" {
		return nil
	}
	a.sets.each(func(s *Authorities) {
		if signer == nil {
			signer = s.find(c.RawIssuer, []byte(key))
		}
	})
	return signer
}

// searched looks for the other signers among all authorities of the issuers'
// names, and reports whether it has found one.
func (a *attempt) searched() bool {
	before := len(a.signers)
	s := a.verifier.search.begin()
	defer s.end()
	for _, c := range a.links {
		a.sets.each(func(set *Authorities) {
			a.try(c, set.named(c).others(), func() bool {
				return a.free() || len(c.RawTBSCertificate) <= maxSearched && s.take()
			})
		})
	}
	if len(a.signers) > before && !a.displaced {
		s.refund()
	}
	return len(a.signers) > before
}

// freeChecks are the signature checks that every client may cost. More are taken
// from what the process spends on searching.
const freeChecks = 16

func (a *attempt) free() bool {
	a.checks++
	return a.checks <= freeChecks
}

// try looks for the signer of c among candidates, for as long as it may. A
// signature has one key, so the first that fits is the one.
func (a *attempt) try(c *x509.Certificate, candidates []*authority, may func() bool) {
	if a.signers[c] != nil {
		return
	}
	for _, candidate := range candidates {
		if !candidate.fits(c) {
			continue
		}
		if !may() {
			return
		}
		if candidate.signed(c) {
			a.signers[c] = candidate
			a.displaced = a.verifier.signers.remember(c, candidate) || a.displaced
			return
		}
	}
}

// judge verifies against the authorities that were found, and reports whether all
// sets vouch.
func (a *attempt) judge() (chains Chains, all bool, first error) {
	all = true
	take := func(into *[][]*x509.Certificate, set, renewed *Authorities) {
		verified, err := a.verify(set, renewed)
		*into = append(*into, verified...)
		if err != nil {
			all = false
		}
		if first == nil {
			first = err
		}
	}
	for _, set := range a.sets.Cluster {
		take(&chains.Cluster, set, a.sets.Renewed)
	}
	if a.sets.Process != nil || len(a.sets.Cluster) == 0 {
		take(&chains.Process, a.sets.Process, nil)
	}
	if len(chains.Process)+len(chains.Cluster) > 0 {
		return chains, all, nil
	}
	return Chains{}, false, first
}

// verify verifies against those of set that signed a link. The certificates of
// the same authorities in renewed count as well: a renewed authority is the same.
func (a *attempt) verify(set, renewed *Authorities) ([][]*x509.Certificate, error) {
	leaf, roots, found := a.links[0], x509.NewCertPool(), false
	add := func(subject, key []byte) {
		known := set.find(subject, key)
		if known == nil {
			return
		}
		found = true
		for _, c := range known.certificates {
			roots.AddCert(c)
		}
		if again := renewed.find(subject, key); again != nil {
			for _, c := range again.certificates {
				roots.AddCert(c)
			}
		}
	}
	add(leaf.RawSubject, leaf.RawSubjectPublicKeyInfo) // a certificate may be trusted by itself
	for _, signer := range a.signers {
		add(signer.subject, signer.key)
	}
	if !found {
		return nil, x509.UnknownAuthorityError{Cert: leaf}
	}
	intermediates := x509.NewCertPool()
	for _, c := range a.links[1:] {
		intermediates.AddCert(c)
	}
	return leaf.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		CurrentTime:   time.Now(),
	})
}
