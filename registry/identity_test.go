// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/registry"
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
	renewed := a
	renewed.certificate = renewed.sign(a.certificate, a.certificate, a.key)
	h := newHome(t)
	h.put("cluster.yaml", identitiesYAML)
	h.put("a.pem", a.pem())
	h.put("b.pem", b.pem())
	s := h.loaded().Snapshot()
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
		"a second chain has a CA":   {append(other.chain("apiserver", nil), a.chain("apiserver", nil)...), "pinned-a"},
		"names of two clusters":     {a.chain("apiserver", []string{"named.example.com"}), ""},
		"a name that is not ours":   {a.chain("apiserver", []string{"stranger.example.com"}), "pinned-a"},
		"a name of a foreign pin":   {b.chain("named", nil), "named"},
		"DNS name is no common one": {other.chain("named.example.com", nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nameOf(s.ByCertificate(c.chains)); got != c.want {
				t.Fatalf("%q, want %q", got, c.want)
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
	s := h.loaded().Snapshot()
	for token, want := range map[string]string{"secret": "token", "secrets": "", "": ""} {
		if got := nameOf(s.ByToken([]byte(token))); got != want {
			t.Errorf("%q is %q, want %q", token, got, want)
		}
	}
}

func nameOf(c *registry.Cluster) string {
	if c == nil {
		return ""
	}
	return c.Name
}
