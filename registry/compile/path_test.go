// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// pathWebhooks are a configuration of a phase; each webhook is a letter, a version
// and a resource.
func pathWebhooks(kind string, webhooks ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: admissionregistration.k8s.io/v1\nkind: %sWebhookConfiguration\nmetadata: {name: c}\nwebhooks:\n", kind)
	for _, w := range webhooks {
		var name, version, resource string
		if _, err := fmt.Sscan(w, &name, &version, &resource); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, `- name: %s.example.com
  clientConfig: {url: "https://hooks.example.com/"}
  rules: [{operations: ["*"], apiGroups: ["x"], apiVersions: [%q], resources: [%q]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, version, resource)
	}
	return b.String()
}

// pathsOf lists the names of the webhooks on each path.
func pathsOf(c *chain.Chain) (paths [][]string) {
	for _, p := range c.Paths {
		var names []string
		for _, i := range p.Positions {
			name, _, _ := strings.Cut(c.Webhooks[i].Name, ".")
			names = append(names, name)
		}
		paths = append(paths, names)
	}
	return paths
}

func chainOf(t *testing.T, kind string, webhooks ...string) *chain.Chain {
	t.Helper()
	h := newHome(t)
	h.put("cluster.yaml", clusterYAML)
	h.put("webhook.yaml", pathWebhooks(kind, webhooks...))
	c := h.good(compile.Options{}).Clusters["dev"]
	if kind == "Mutating" {
		return c.Mutating
	}
	return c.Validating
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kind     string
		webhooks []string
		want     [][]string
	}{
		{"no conflict, one path", "Validating", []string{"a v1 pods", "b v1 pods", "c v2 things"}, [][]string{{"a", "b", "c"}}},
		{"two lists", "Validating", []string{"a * *", "b v1 pods", "c v1 pods", "d v1 things"}, [][]string{{"a"}, {"b", "c", "d"}}},
		{"validating webhooks join whom they fit", "Validating", []string{"a * *", "b v1 pods", "c * pods", "d v1 things"}, [][]string{{"a", "c"}, {"b", "d"}}},
		{"mutating webhooks stay in order", "Mutating", []string{"a * *", "b v1 pods", "c * pods", "d v1 things"}, [][]string{{"a"}, {"b"}, {"c", "d"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chainOf(t, tt.kind, tt.webhooks...)
			if diff := cmp.Diff(tt.want, pathsOf(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			main := 0
			for _, p := range c.Paths {
				if got, current := c.Path([]byte(p.Segment)); got != p || !current {
					t.Errorf("%q is not the path that it names", p.Segment)
				}
				if !strings.HasPrefix(p.Segment, "only.") {
					main++
				}
			}
			if main != 1 {
				t.Errorf("%d main paths", main)
			}
			for i := range c.Webhooks {
				if p := c.PathOf(i); p == nil || !slices.Contains(p.Positions, i) {
					t.Errorf("webhook %d stands on no path", i)
				}
			}
		})
	}
}

// What an older registration calls says itself what it considers: a webhook that
// was added since is considered on the main path, and only there; one that is gone
// is ignored.
func TestOlderPaths(t *testing.T) {
	before := chainOf(t, "Validating", "a * *", "b v1 pods", "gone v1 pods")
	after := chainOf(t, "Validating", "a * *", "b v1 pods", "new v1 things")
	alone := chainOf(t, "Validating", "b v1 pods", "new v1 things")
	single := chainOf(t, "Validating", "a * *")
	id := func(name string) string { return chain.PathID("c/" + name + ".example.com") }
	on := func(c *chain.Chain, segment string) string {
		p, current := c.Path([]byte(segment))
		var names []string
		for _, i := range p.Among([]int{0, 1, 2}[:len(c.Webhooks)]) {
			name, _, _ := strings.Cut(c.Webhooks[i].Name, ".")
			names = append(names, name)
		}
		return fmt.Sprint(names, current)
	}
	apart, main := before.Paths[0].Segment, before.Paths[1].Segment
	for _, tt := range []struct {
		name    string
		chain   *chain.Chain
		segment string
		want    string
	}{
		{"as printed, apart", before, apart, "[a] true"},
		{"as printed, main", before, main, "[b gone] true"},
		{"changed, apart: printed the same", after, apart, "[a] true"},
		{"changed, main", after, main, "[b new] true"},
		{"nothing conflicts any more, apart", alone, apart, "[] false"},
		{"nothing conflicts any more, main", alone, main, "[b new] false"},
		{"the path of all, where webhooks conflict", after, "", "[a b new] false"},
		{"the path of all", alone, "", "[b new] true"},
		{"apart then, alone now", single, apart, "[a] false"},
		{"all but those apart then, alone now", single, main, "[] false"},
		{"never printed, only", after, "only." + id("b"), "[b] false"},
		{"never printed, not", after, "not." + id("b"), "[a new] false"},
		{"the ids of nobody", after, "only.0000000000.vvvvvvvvvv", "[] false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := on(tt.chain, tt.segment); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if n := testing.AllocsPerRun(100, func() { after.Path([]byte(main)) }); n > 1 { // the conversion here
		t.Errorf("%v allocations for a path that is printed", n)
	}
}
