// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kjson "sigs.k8s.io/json"
)

// TestMutations has random policies mutate random pods, in the API server's own dispatcher
// of MutatingAdmissionPolicies and in ours. The verdict, its code, reason and text, and the
// pods are equal (H11 H21 H22 H23 H24).
func TestMutations(t *testing.T) {
	pairs, seed := number(t, "CONFORMANCE_N", 2000), number(t, "CONFORMANCE_SEED", 1)
	oracle, ours := newMutationOracle(t), newPolicySubject(t)
	came := map[string]int{}
	for i := range pairs / reviewsOfPolicies {
		g := &policySource{rand.New(rand.NewPCG(seed, i))}
		policies, bindings := g.mutating()
		params := g.params()
		if !ours.loadMutating(t, policies, bindings, params...) {
			continue // an expression that does not compile: no API server stores it
		}
		hooks := oracle.hooks(policies, bindings, params...)
		for range reviewsOfPolicies {
			a := g.admission()
			if pod, ok := a.New.(*corev1.Pod); ok && g.some(90) {
				pod.Annotations = map[string]string{"kept": "yes"}
			}
			want, wanted := oracle.mutate(t, hooks, a)
			got, object := ours.mutate(t, a)
			if want.Code == 500 { // what is no pod, which the API server tells us when it reads our answer, not after each mutation
				came[noPod(got, object)]++
				continue
			}
			if want.Allowed && got.Allowed && a.New != nil {
				pod, err := strictly(object)
				switch {
				case err != nil:
					want.Message = fmt.Sprintf("ours makes no pod: %v", err)
				case !equality.Semantic.DeepEqual(wanted, pod):
					want.Message = cmp.Diff(wanted, pod)
				case !equality.Semantic.DeepEqual(wanted, a.New):
					came["changed"]++
				}
			}
			came[kindOfMutation(want)]++
			if strings.Contains(want.Message, "failed to configure") && !got.Allowed {
				continue // which the API server tells before all other failures, and we in its turn
			}
			if diff := cmp.Diff(comparable(want), comparable(got)); diff != "" {
				text, _ := json.MarshalIndent([]any{policies, bindings, a}, "", " ")
				t.Fatalf("seed %d, policies %d (-oracle +ours):\n%s\n%s\n%s", seed, i, diff, text, object)
			}
		}
	}
	t.Log(came, ours.loaded, "loads,", len(ours.refused), "refused")
	if len(ours.refused) > ours.loaded {
		t.Errorf("most are refused: %v", ours.refused[0])
	}
	for _, kind := range []string{"allowed", "changed", "error", "does not apply", "type mismatch", "atomic", "not merged", "unconfigured"} {
		if came[kind] == 0 {
			t.Errorf("no pair was %s: %v", kind, came)
		}
	}
	if came["no pod"]+came["no pod, denied"] == 0 {
		t.Errorf("the object of no pair was no pod: %v", came)
	}
}

// noPod says what became of an object that at one time was no pod.
func noPod(d decided, object []byte) string {
	if !d.Allowed {
		return "no pod, denied"
	}
	if _, err := strictly(object); err != nil {
		return "no pod"
	}
	return "no pod, mended"
}

func kindOfMutation(d decided) string {
	switch {
	case d.Allowed:
		return "allowed"
	case strings.Contains(d.Message, "failed to configure"):
		return "unconfigured"
	case strings.Contains(d.Message, "JSON Patch: "):
		return "does not apply"
	case strings.Contains(d.Message, "atomic"):
		return "atomic"
	case strings.Contains(d.Message, "error applying patch: "):
		return "not merged"
	case strings.Contains(d.Message, "type mismatch: "):
		return "type mismatch"
	}
	return "error"
}

// comparable is d without what is not ours to say: why a patch does not apply in the words
// of json-patch.v4, and Go's types.
func comparable(d decided) decided {
	d = d.withoutGoTypes()
	if before, list, found := strings.Cut(d.Message, "maps or structs: "); found { // in no order
		atomics := strings.Split(list, ", ")
		slices.Sort(atomics)
		d.Message = before + strings.Join(atomics, ", ")
	}
	if before, _, found := strings.Cut(d.Message, "JSON Patch: "); found {
		d.Message = before + "JSON Patch"
	}
	return d
}

func decodeStrictly(text []byte, into any) error {
	problems, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	return err
}
