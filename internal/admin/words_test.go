// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// detailed has what is said on occasion only.
func detailed() status.Status {
	s := outage()
	s.Clusters[0].Objects = []status.Objects{
		{Resource: "pods in v1", Cached: 7, Bytes: 3 << 20, Unkept: 2, Partial: true, Stale: true, LiveGets: 5, Error: "forbidden"},
		{Resource: "nodes in v1", Cached: 1},
	}
	s.Clusters[0].Namespaces = &status.Namespaces{Cached: 3, LiveGets: 1, Error: "timed out"}
	s.Clusters[0].Authorizer = &status.Authorizer{Answered: 4, Cached: 3, Failed: 2, Shed: 1, Error: "busy"}
	s.Clusters[0].Anonymous = true
	w := &s.Webhooks[1]
	w.Retry, w.Stage, w.Reinvocation = true, "Transactional", true
	s.Denials[0].DryRun = true
	s.Pending[0].Previous = true
	s.History[1].Pending, s.History[1].First = 3, true
	s.History[1].Added = []string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"}
	s.History[0].Problems = []manifest.Problem{{Reason: "p1"}, {Reason: "p2"}, {Reason: "p3"}, {Reason: "p4"}}
	return s
}

// What is said on occasion is said then, and only then.
func TestOccasions(t *testing.T) {
	const image = "/webhooks/image-policy/images.policy.example.com"
	for _, c := range []struct {
		path        string
		says, never []string
	}{
		{"/", []string{"Fail, after retries", "validate · dry run · uid 0b8f", "4 webhooks for 3 clusters, 3 pending", "the first configuration",
			"added a/1 , a/2 , a/3 , a/4 , a/5 and 2 more", "p1 p2 p3 and 1 more"}, []string{"a/6", "p4"}},
		{"/clusters/dev", []string{"none: anybody who connects is it", "pods in v1 stale 7 cached, 3.0 MiB, 2 not kept, more not known, 5 asked for: forbidden",
			"nodes in v1 watched 1 cached, 0.0 MiB, 0 asked for", "watched 3 cached, 1 asked for: timed out", "4 answered, 3 cached, 2 failed, 1 shed: busy"}, nil},
		{"/clusters/prod-eu", []string{"a certificate or a token", "watched 412 cached, 9 asked for Authorizer not asked"}, []string{"not kept"}},
		{image, []string{"validate, after all others and only if they allowed, and once more if later webhooks change the object"}, nil},
		{"/webhooks/license-scan/licenses.scan.example.com", []string{"Phase validate Mode"}, nil},
		{"/webhooks/mesh/inject.mesh.example.com", []string{"connection refused (https://inject.mesh.svc:443/); its previous version serves"}, nil},
	} {
		page := text(fetch(pagesOf(detailed), http.MethodGet, c.path).Body.String())
		for _, want := range c.says {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not say %q:\n%s", c.path, want, page)
			}
		}
		for _, none := range c.never {
			if strings.Contains(page, none) {
				t.Errorf("%s says %q", c.path, none)
			}
		}
	}
	plain := text(fetch(pagesOf(healthy), http.MethodGet, "/").Body.String())
	for _, none := range []string{"dry run", "after retries", "pending 2", "the first configuration"} {
		if strings.Contains(plain, none) {
			t.Errorf("it says %q of what is plain", none)
		}
	}
}
