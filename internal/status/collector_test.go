// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// What is served is told once, and everything that names something names what is
// there.
func TestServed(t *testing.T) {
	s := newWorld(t).load()
	if len(s.Problems) > 0 || s.Snapshot == nil || !strings.HasPrefix(s.Snapshot.Hash, s.Snapshot.Short) {
		t.Fatalf("problems %v, snapshot %+v", s.Problems, s.Snapshot)
	}
	webhooks, targets := map[string]bool{}, map[string]bool{}
	for _, x := range s.Targets {
		if targets[x.ID] {
			t.Errorf("target %s comes twice", x.ID)
		}
		targets[x.ID] = true
		if x.Unresolved == "" {
			t.Errorf("%s does not say why it has no endpoint", x.URL)
		}
	}
	for _, w := range s.Webhooks {
		if webhooks[w.ID] {
			t.Errorf("webhook %s comes twice", w.ID)
		}
		webhooks[w.ID] = true
		if !targets[w.Target] {
			t.Errorf("webhook %s has no target", w.ID)
		}
		if w.Matches == "" || w.TimeoutSeconds <= 0 {
			t.Errorf("webhook %+v", w)
		}
	}
	for _, c := range s.Clusters {
		chain := s.Chains[c.Chain]
		for _, id := range slices.Concat(chain.Mutating, chain.Validating) {
			if !webhooks[id] {
				t.Errorf("cluster %s has webhook %s, which is not there", c.Name, id)
			}
		}
	}
	if got := names(s.Clusters); !slices.Equal(got, []string{"dev", "prod", "staging"}) {
		t.Errorf("clusters are %v", got)
	}
}

func names(clusters []status.Cluster) []string {
	var list []string
	for _, c := range clusters {
		list = append(list, c.Name)
	}
	return list
}

// A webhook that bindings make several of has one entry for each, which say how
// they differ.
func TestVariants(t *testing.T) {
	var modes, ids []string
	for _, w := range newWorld(t).load().Webhooks {
		if w.Name == "images.policy.example.com" {
			modes, ids = append(modes, w.Mode), append(ids, w.ID)
			if bound := len(w.Bindings) > 0; bound != (w.Mode == "Shadow") {
				t.Errorf("%s in mode %s is bound by %v: the binding makes it Shadow where it selects", w.ID, w.Mode, w.Bindings)
			}
		}
	}
	slices.Sort(modes)
	if !slices.Equal(modes, []string{"Enforce", "Shadow"}) || len(ids) != 2 || ids[1] != ids[0]+"@2" {
		t.Errorf("modes %v of %v", modes, ids)
	}
}

// The history says what each change did, and what was refused and why.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.load()
	owner := w.example("validating-owner.yaml")
	w.write("validating-owner.yaml", strings.Replace(owner, "failurePolicy: Fail", "failurePolicy: Ignore", 1))
	w.load()
	w.remove("validating-flaky.yaml")
	w.write("more.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: more}\nspec: {authentication: {certificate: {commonNames: [more]}}, namespaces: {labels: {shop: {}}}}\n")
	changed := w.load()
	w.write("nonsense.yaml", "kind: Nonsense\n")
	refused := w.load()
	w.load() // is no news
	w.remove("nonsense.yaml")
	s := w.load()

	var got []string
	for _, c := range slices.Backward(s.History) {
		text := "served"
		if c.Refused {
			text = "refused: " + c.Problems[0].Reason
		}
		for _, part := range []struct {
			sign string
			list []string
		}{{" +", c.Added}, {" -", c.Removed}, {" ~", c.Changed}} {
			if len(part.list) > 0 {
				text += part.sign + strings.Join(part.list, ",")
			}
		}
		got = append(got, text)
	}
	want := []string{
		"served",
		"served ~owner-policy/owner.policy.example.com",
		"served +Cluster/more -license-scan/licenses.scan.example.com",
		"refused: apiVersion and kind are required",
		"served",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if refused.Snapshot.Hash != changed.Snapshot.Hash || refused.History[0].Snapshot != changed.Snapshot.Short || len(refused.Problems) != 1 {
		t.Errorf("while a change is refused: %+v", refused.History[0])
	}
	if !s.Snapshot.Since.Equal(changed.Snapshot.Since) || changed.Snapshot.Since.IsZero() {
		t.Errorf("served since %v, then %v", changed.Snapshot.Since, s.Snapshot.Since)
	}
}
