// SPDX-License-Identifier: Apache-2.0

package trust_test

import (
	"crypto/x509"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// standard is what crypto/tls does with a pool of all authorities.
func standard(sent, authorities []*x509.Certificate) ([][]*x509.Certificate, error) {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range authorities {
		roots.AddCert(c)
	}
	for _, c := range sent[1:] {
		intermediates.AddCert(c)
	}
	return sent[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// draw makes authorities, and what a client sends: right and wrong in every way
// that a chain can be.
func draw(t *testing.T, random *rand.Rand) (authorities, sent []*x509.Certificate) {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	seldom := func() bool { return random.IntN(8) == 0 }
	authority := func() spec {
		s := spec{
			name: pick("kubernetes", "kubernetes", "one", "two"), ca: !seldom(), key: keys()[random.IntN(len(keys()))],
			expired: seldom(), pathLen: []int{-1, -1, -1, 0, 1}[random.IntN(5)], withoutSKID: random.IntN(4) == 0,
			pointer: pointer(random.IntN(3)),
		}
		if seldom() {
			s.usage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}
		if seldom() {
			s.permitted = []string{"example.com"}
		}
		return s
	}
	var all, roots []*entity
	for range 1 + random.IntN(6) {
		r := issue(t, authority(), nil)
		roots = append(roots, r)
		if !seldom() {
			authorities = append(authorities, r.certificate)
		}
		if seldom() { // renewed
			again := authority()
			again.name, again.key = r.certificate.Subject.CommonName, r.key
			authorities = append(authorities, issue(t, again, nil).certificate)
		}
	}
	all = roots
	for range random.IntN(6) {
		s, issuer := authority(), all[random.IntN(len(all))]
		if s.ca = issuer.certificate.IsCA && s.ca; random.IntN(3) == 0 { // cross-signed
			twin := all[random.IntN(len(all))]
			s.name, s.key = twin.certificate.Subject.CommonName, twin.key
		}
		i := issue(t, s, issuer)
		all = append(all, i)
		if seldom() {
			authorities = append(authorities, i.certificate)
		}
	}
	leaf := spec{
		name: pick("east", "kubernetes"), key: keys()[random.IntN(len(keys()))], expired: seldom(), pointer: pointer(random.IntN(3)),
		dns: []string{pick("a.example.com", "a.example.org")},
		usage: [][]x509.ExtKeyUsage{
			{x509.ExtKeyUsageClientAuth}, {x509.ExtKeyUsageClientAuth}, {x509.ExtKeyUsageAny}, nil, {x509.ExtKeyUsageServerAuth},
		}[random.IntN(5)],
	}
	var client *entity
	if seldom() {
		client = issue(t, leaf, nil) // self-signed
		if random.IntN(2) == 0 {
			authorities = append(authorities, client.certificate)
		}
	} else {
		client = issue(t, leaf, all[random.IntN(len(all))])
		if seldom() { // trusted by itself
			authorities = append(authorities, client.certificate)
		}
	}
	for _, e := range all {
		if random.IntN(5) > 0 {
			sent = append(sent, e.certificate)
		}
	}
	random.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	return authorities, append([]*x509.Certificate{client.certificate}, sent...)
}

// areVerified reports whether the standard verifies each of the chains by itself.
// They need not be all: where there are several ways to an authority, the Verifier
// does not look for more than it needs, and the standard stops at its limit.
func areVerified(chains [][]*x509.Certificate) bool {
	for _, chain := range chains {
		last := len(chain) - 1
		found, err := standard(chain[:max(1, last)], chain[last:])
		if err != nil || !slices.ContainsFunc(found, func(other []*x509.Certificate) bool {
			return slices.EqualFunc(chain, other, (*x509.Certificate).Equal)
		}) {
			return false
		}
	}
	return true
}

// The Verifier says what crypto/tls says: the same certificates are verified, by
// chains that it finds, too, the first time and when they are remembered.
func TestDifferential(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 200
	}
	random := rand.New(rand.NewPCG(3, 14))
	v, verified, limited := trust.NewVerifier(), 0, 0
	for i := range cases {
		authorities, sent := draw(t, random)
		want, wantErr := standard(sent, authorities)
		switch {
		case wantErr == nil:
			verified++
		case strings.Contains(wantErr.Error(), "signature check attempts limit reached"):
			limited++
			continue
		}
		set := trust.NewAuthorities(authorities)
		for _, time := range []string{"first", "second"} {
			got, err := v.Verify(sent, trust.Sets{Process: set})
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("case %d, %s time: %v, want %v", i, time, err, wantErr)
			}
			if (len(got.Process) > 0) != (wantErr == nil) || !areVerified(got.Process) || len(got.Cluster) > 0 {
				t.Fatalf("case %d, %s time: %d chains, want %d, or other ones", i, time, len(got.Process), len(want))
			}
			own, err := v.Verify(sent, trust.Sets{Cluster: []*trust.Authorities{set}})
			if (err == nil) != (wantErr == nil) || !areVerified(own.Cluster) || len(own.Process) > 0 {
				t.Fatalf("case %d, %s time, as a cluster's own: %v, want %v", i, time, err, wantErr)
			}
		}
	}
	if verified < cases/10 || verified > cases*9/10 {
		t.Errorf("%d of %d cases are verified: the draw has become one-sided", verified, cases)
	}
	t.Logf("%d cases, %d verified, %d beyond the limit of the standard", cases, verified, limited)
}

// Where the standard gives up, the Verifier does not.
func TestManyAuthorities(t *testing.T) {
	for name, names := range map[string]func(int) string{"equal": equalNames, "distinct": distinctNames} {
		for id, p := range map[string]pointer{"with key id": right, "without": none} {
			t.Run(name+" names "+id, func(t *testing.T) {
				authorities, client := fleet(t, 300, names, p)
				if p == none && name == "equal" {
					if _, err := standard([]*x509.Certificate{client.certificate}, authorities); err == nil {
						t.Error("the standard verifies it")
					}
				}
				if _, err := trust.NewVerifier().Verify([]*x509.Certificate{client.certificate}, trust.Sets{Process: trust.NewAuthorities(authorities)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// What is remembered of a certificate says who signed it, not who is trusted.
func TestMemoryTrustsNobody(t *testing.T) {
	authorities, client := fleet(t, 3, equalNames, none)
	v, sent := trust.NewVerifier(), []*x509.Certificate{client.certificate}
	for _, now := range []struct {
		authorities []*x509.Certificate
		verified    bool
	}{{authorities, true}, {authorities[:2], false}, {nil, false}, {authorities[1:], true}} {
		_, err := v.Verify(sent, trust.Sets{Process: trust.NewAuthorities(now.authorities)})
		if (err == nil) != now.verified {
			t.Errorf("%d authorities: %v", len(now.authorities), err)
		}
	}
	if _, err := v.Verify(sent, trust.Sets{}); err == nil {
		t.Error("verified by nobody")
	}
}

// A cluster's own authorities vouch for it alone; a certificate of the same
// authority that the process has stands in for one that has expired.
func TestOwnAuthorities(t *testing.T) {
	old := issue(t, spec{name: "kubernetes", ca: true, key: keys()[1], pathLen: -1, expired: true}, nil)
	renewed := issue(t, spec{name: "kubernetes", ca: true, key: keys()[1], pathLen: -1}, nil)
	other := issue(t, spec{name: "kubernetes", ca: true, key: keys()[2], pathLen: -1}, nil)
	of := func(issuer *entity) []*x509.Certificate {
		return []*x509.Certificate{issue(t, spec{name: "east", key: keys()[0]}, issuer).certificate}
	}
	pin := []*trust.Authorities{trust.NewAuthorities([]*x509.Certificate{old.certificate})}
	all := trust.NewAuthorities([]*x509.Certificate{renewed.certificate, other.certificate})
	v := trust.NewVerifier()
	if _, err := v.Verify(of(renewed), trust.Sets{Cluster: pin}); err == nil {
		t.Error("an expired authority vouches")
	}
	if got, err := v.Verify(of(renewed), trust.Sets{Cluster: pin, Renewed: all}); err != nil || len(got.Cluster) != 1 || len(got.Process) != 0 {
		t.Errorf("the renewed authority does not: %+v, %v", got, err)
	}
	if _, err := v.Verify(of(other), trust.Sets{Cluster: pin, Renewed: all}); err == nil {
		t.Error("another authority of the process vouches for a name that is pinned")
	}
}

// Rotation: while the old authority and the new one of one name are both there,
// certificates of both are verified.
func TestRotation(t *testing.T) {
	old := issue(t, spec{name: "kubernetes", ca: true, key: keys()[1], pathLen: -1}, nil)
	fresh := issue(t, spec{name: "kubernetes", ca: true, key: keys()[2], pathLen: -1}, nil)
	set := trust.NewAuthorities([]*x509.Certificate{old.certificate, fresh.certificate})
	for _, issuer := range []*entity{old, fresh} {
		for _, p := range []pointer{right, none, wrong} {
			leaf := issue(t, spec{name: "east", key: keys()[0], pointer: p}, issuer)
			if _, err := trust.NewVerifier().Verify([]*x509.Certificate{leaf.certificate}, trust.Sets{Process: set}); err != nil {
				t.Error(err)
			}
		}
	}
}
