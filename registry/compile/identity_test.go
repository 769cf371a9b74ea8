// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const identitiesYAML = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: named}
spec:
  authentication:
    certificate:
      commonNames: [named]
      dnsNames: [named.example.com]
      uris: ["spiffe://example.com/named"]
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: pinned-a}
spec: {authentication: {certificate: {commonNames: [apiserver], caFile: a.pem}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: pinned-b}
spec: {authentication: {certificate: {commonNames: [apiserver], caFile: b.pem}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: token}
spec:
  authentication:
    bearerTokenSHA256: # of "secret"
    - 2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25B
`

func TestByCertificate(t *testing.T) {
	later := time.Now().Add(1000 * time.Hour)
	a, b, other := newAuthority(t, "a", later), newAuthority(t, "b", later), newAuthority(t, "other", later)
	renewed, namesake := a.again("a"), a.again("another name")
	h := newHome(t)
	h.put("cluster.yaml", identitiesYAML)
	h.put("a.pem", a.pem())
	h.put("b.pem", b.pem())
	s := h.good(compile.Options{})
	for name, c := range map[string]struct {
		chains [][]*x509.Certificate
		want   string
	}{
		"common name":               {other.chain("named", nil), "named"},
		"DNS name":                  {other.chain("", []string{"x.example.com", "named.example.com"}), "named"},
		"URI":                       {other.chain("", nil, "spiffe://example.com/named"), "named"},
		"case matters":              {other.chain("Named", nil), ""},
		"no name":                   {other.chain("", nil), ""},
		"no chain":                  {nil, ""},
		"empty chain":               {[][]*x509.Certificate{{}}, ""},
		"pin a":                     {a.chain("apiserver", nil), "pinned-a"},
		"pin b":                     {b.chain("apiserver", nil), "pinned-b"},
		"pin, other CA":             {other.chain("apiserver", nil), ""},
		"pin, CA renewed":           {renewed.chain("apiserver", nil), "pinned-a"},
		"pin, another CA's name":    {namesake.chain("apiserver", nil), ""},
		"a second chain has a CA":   {append(other.chain("apiserver", nil), a.chain("apiserver", nil)...), "pinned-a"},
		"names of two clusters":     {a.chain("apiserver", []string{"named.example.com"}), ""},
		"a name that is not ours":   {a.chain("apiserver", []string{"stranger.example.com"}), "pinned-a"},
		"a name of a foreign pin":   {b.chain("named", nil), "named"},
		"DNS name is no common one": {other.chain("named.example.com", nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.ByCertificate(trust.Chains{Process: c.chains}).Cluster; got != c.want {
				t.Fatalf("%q, want %q", got, c.want)
			}
		})
	}
}

// A chain to an authority that one cluster pins is worth nothing for a name that
// is not that cluster's, even if both once were.
func TestChainsOfAClustersOwnAuthority(t *testing.T) {
	later := time.Now().Add(1000 * time.Hour)
	a, b, process := newAuthority(t, "a", later), newAuthority(t, "b", later), newAuthority(t, "process", later)
	h := newHome(t)
	h.put("cluster.yaml", identitiesYAML)
	h.put("a.pem", a.pem())
	h.put("b.pem", b.pem())
	s := h.good(compile.Options{})
	for name, c := range map[string]struct {
		chains trust.Chains
		want   string
	}{
		"its own name":              {trust.Chains{Cluster: a.chain("apiserver", nil)}, "pinned-a"},
		"a name that is not pinned": {trust.Chains{Cluster: a.chain("named", nil)}, ""},
		"both":                      {trust.Chains{Process: process.chain("named", nil), Cluster: a.chain("named", nil)}, "named"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.ByCertificate(c.chains).Cluster; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	all := trust.NewAuthorities([]*x509.Certificate{process.Certificate})
	for name, c := range map[string]struct {
		leaf    *x509.Certificate
		process bool
		own     int
	}{
		"pinned":     {a.chain("apiserver", nil)[0][0], false, 1},
		"not pinned": {a.chain("named", nil)[0][0], true, 0},
		"both":       {a.chain("apiserver", []string{"named.example.com"})[0][0], true, 1},
		"nobody":     {a.chain("stranger", nil)[0][0], true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sets := s.Authorities(c.leaf, all)
			if got := sets.Process != nil; got != c.process || len(sets.Cluster) != c.own {
				t.Errorf("the process's: %t, clusters': %d; want %t and %d", got, len(sets.Cluster), c.process, c.own)
			}
		})
	}
}

// Two clusters may have one name if each pins authorities of its own, and only then (E11).
func TestPinsOfOneName(t *testing.T) {
	later := time.Now().Add(1000 * time.Hour)
	a, b := newAuthority(t, "a", later), newAuthority(t, "b", later)
	h := newHome(t)
	h.put("a.pem", a.pem())
	h.put("b.pem", b.pem())
	h.put("both.pem", a.pem()+b.pem())
	for _, c := range []struct {
		first, second string
		shared        bool
	}{
		{"a.pem", "b.pem", false},
		{"a.pem", "a.pem", true},
		{"a.pem", "both.pem", true},
		{"a.pem", "", true},
		{"", "a.pem", true},
		{"", "", true},
	} {
		t.Run("E11 "+c.first+" and "+c.second, func(t *testing.T) {
			var manifests []string
			for i, pin := range []string{c.first, c.second} {
				if pin != "" {
					pin = ", caFile: " + pin
				}
				manifests = append(manifests, fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c%d}\n"+
					"spec: {authentication: {certificate: {commonNames: [apiserver]%s}}}\n", i, pin))
			}
			h.put("cluster.yaml", strings.Join(manifests, "---\n"))
			_, problems, _ := h.compile(compile.Options{})
			if is := len(problems) == 1 && strings.Contains(problems[0].String(), `"apiserver": is also an identity of Cluster/c0`); is != c.shared || len(problems) > 1 {
				t.Errorf("problems %v", problems)
			}
		})
	}
}

// A certificate that has the names of several clusters is of none of them, in
// whatever order they stand, and however many there are.
func TestNamesOfManyClusters(t *testing.T) {
	ca := newAuthority(t, "a", time.Now().Add(1000*time.Hour))
	h := newHome(t)
	h.put("a.pem", ca.pem())
	var manifests, names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("c%d.example.com", i))
		manifests = append(manifests, fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c%d}\n"+
			"spec: {authentication: {certificate: {dnsNames: [c%[1]d.example.com, also%[1]d.example.com], caFile: a.pem}}}\n", i))
	}
	h.put("cluster.yaml", strings.Join(manifests, "---\n"))
	s := h.good(compile.Options{})
	for name, c := range map[string]struct {
		names []string
		want  string
	}{
		"two names of one":             {[]string{"c3.example.com", "also3.example.com"}, "c3"},
		"two clusters":                 {[]string{"c3.example.com", "c4.example.com"}, ""},
		"one, another, and one again":  {[]string{"c3.example.com", "c4.example.com", "also4.example.com"}, ""},
		"more than are ever looked at": {names, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chain := ca.chain("", c.names)
			if got := s.ByCertificate(trust.Chains{Cluster: chain}).Cluster; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			process := trust.NewAuthorities(nil)
			sets := s.Authorities(chain[0][0], process)
			if got, want := len(sets.Cluster), min(len(c.names), 8); got != want || sets.Process != nil || sets.Renewed != process {
				t.Errorf("%d authorities of clusters, want %d; the process's: %v, for those renewed: %v", got, want, sets.Process, sets.Renewed)
			}
		})
	}
}

func TestByToken(t *testing.T) {
	h := newHome(t)
	h.put("cluster.yaml", identitiesYAML)
	ca := newAuthority(t, "a", time.Now().Add(1000*time.Hour))
	h.put("a.pem", ca.pem())
	h.put("b.pem", newAuthority(t, "b", time.Now().Add(1000*time.Hour)).pem())
	s := h.good(compile.Options{})
	for token, want := range map[string]string{"secret": "token", "secrets": "", "": ""} {
		if got := byToken(s, []byte(token)); got != want {
			t.Errorf("%q is %q, want %q", token, got, want)
		}
	}
}

// byToken returns the name of the cluster whose token this is by its sum.
func byToken(s *compile.Compiled, token []byte) string {
	who, _ := s.ByToken(token, nil, time.Time{})
	return who.Cluster
}

// tokenClusters returns n clusters with a bearer token each.
func tokenClusters(tb testing.TB, n int) *compile.Compiled {
	tb.Helper()
	var o manifest.Objects
	for i := range n {
		c := manifest.Cluster{Origin: manifest.Origin{File: "f", Object: fmt.Sprintf("Cluster/c%d", i)}}
		c.Name = fmt.Sprintf("c%d", i)
		c.Spec.Authentication.BearerTokenSHA256 = []string{fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "token-%d", i)))}
		o.Clusters = append(o.Clusters, c)
	}
	compiled, problems, _ := compile.NewCompiler(compile.Options{}).Compile(manifest.Input{Objects: &o}, nil, nil)
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	return compiled
}

func TestByTokenOfMany(t *testing.T) {
	s := tokenClusters(t, 300)
	for i := range 300 {
		if got, want := byToken(s, fmt.Appendf(nil, "token-%d", i)), fmt.Sprintf("c%d", i); got != want {
			t.Errorf("token %d is of %q, want %q", i, got, want)
		}
	}
	if got := byToken(s, []byte("token-300")); got != "" {
		t.Errorf("a token of nobody is of %q", got)
	}
}

// BenchmarkByToken: the time of a lookup does not grow with the number of
// clusters.
func BenchmarkByToken(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, token := tokenClusters(b, n), []byte("token-7")
			for b.Loop() {
				if byToken(s, token) == "" {
					b.Fatal("the token is of nobody")
				}
			}
		})
	}
}
