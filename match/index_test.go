// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// TestIndexAgainstLinear holds the index against asking every matcher: whoever
// does not answer NoRule is a candidate, once, in ascending order.
func TestIndexAgainstLinear(t *testing.T) {
	cel := celenv.NewCompiler()
	rapid.Check(t, func(t *rapid.T) {
		r := drawReview(t)
		matchers := make([]*match.Matcher, rapid.IntRange(0, 12).Draw(t, "matchers"))
		var linear []int
		for i := range matchers {
			m, err := match.Compile(drawSpec(t), cel)
			if err != nil {
				t.Fatal(err)
			}
			matchers[i] = m
			if m.Match(subjectOf(r)).Reason != match.NoRule {
				linear = append(linear, i)
			}
		}
		got := match.NewIndex(matchers).Candidates([]int{-1}, r)
		if got[0] != -1 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("candidates %v are not ascending, or do not follow what was there", got)
		}
		indexed := slices.DeleteFunc(got[1:], func(i int) bool {
			return matchers[i].Match(subjectOf(r)).Reason == match.NoRule
		})
		if !slices.Equal(indexed, linear) {
			t.Fatalf("got %v, asking all of them says %v", indexed, linear)
		}
	})
}

func TestCandidatesAreFew(t *testing.T) {
	tests := []struct {
		name string
		rule admissionregistrationv1.RuleWithOperations
	}{
		{"another group", rule("apps", "*", "*/*")},
		{"another resource", rule("*", "*", "services/*")},
		{"another subresource", rule("*", "*", "*/status")},
		{"a subresource", rule("", "v1", "pods/exec")},
		{"another operation", rule("*", "*", "*/*", "DELETE")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := everything()
			spec.Rules = []admissionregistrationv1.RuleWithOperations{tt.rule}
			ix := match.NewIndex([]*match.Matcher{compile(t, spec)})
			if got := ix.Candidates(nil, reviewOf(codec.Create, "", "v1", "pods", "", "shop")); len(got) > 0 {
				t.Error("it is a candidate, though its rules say that it cannot match")
			}
		})
	}
}

// B20a: who may have to be told that the review is not in its form is a candidate.
func TestB20aCandidatesInOtherForms(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rule   admissionregistrationv1.RuleWithOperations
		review *codec.Review
	}{
		{"B20a an equivalent of another group", rule("", "v1", "events"), reviewOf(codec.Create, "events.k8s.io", "v1", "events", "", "shop")},
		{"B20a what the user sent", rule("", "v1", "pods/exec"), func() *codec.Review {
			r := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
			r.RequestSubResource = []byte("exec")
			return r
		}()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := everything()
			spec.Rules = []admissionregistrationv1.RuleWithOperations{tt.rule}
			m := compile(t, spec)
			expect(t, m, subjectOf(tt.review), match.NotConvertible)
			if got := match.NewIndex([]*match.Matcher{m}).Candidates(nil, tt.review); len(got) != 1 {
				t.Errorf("the candidates are %v", got)
			}
		})
	}
}

// registered is n matchers, of which 5 want pods that are created; the others
// want what is near.
func registered(t testing.TB, n int) []*match.Matcher {
	cel := celenv.NewCompiler()
	near := []admissionregistrationv1.RuleWithOperations{
		rule("", "v1", "pods", "DELETE"), rule("", "v1", "pods/exec"), rule("apps", "*", "*"), rule("*", "v1", "*/status"),
	}
	matchers := make([]*match.Matcher, n)
	for i := range matchers {
		spec := everything()
		switch {
		case i < 5:
			spec.Rules = []admissionregistrationv1.RuleWithOperations{rule("", "v1", "pods", "CREATE", "UPDATE")}
		case i%5 == 4:
			spec.Rules = []admissionregistrationv1.RuleWithOperations{rule(fmt.Sprintf("g%d.example.com", i%50), "v1", fmt.Sprintf("r%d", i))}
		default:
			spec.Rules = near[i%5 : i%5+1]
		}
		var err error
		if matchers[i], err = match.Compile(spec, cel); err != nil {
			t.Fatal(err)
		}
	}
	return matchers
}

// matchAll is matching as the dispatcher does it, and returns how many matched.
func matchAll(ix *match.Index, matchers []*match.Matcher, s *match.Subject, buf []int) (matched int) {
	for _, i := range ix.Candidates(buf[:0], s.Review) {
		if d := matchers[i].Match(s); d.Reason == match.Matched {
			matched++
		}
	}
	return matched
}

// BenchmarkMatch is P10: 5 of 10 against 5 of 10,000.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("5 of %d", n), func(b *testing.B) {
			matchers := registered(b, n)
			ix := match.NewIndex(matchers)
			s, buf := subjectOf(reviewOf(codec.Create, "", "v1", "pods", "", "shop")), make([]int, 0, 16)
			b.ReportAllocs()
			for b.Loop() {
				if got := matchAll(ix, matchers, s, buf); got != 5 {
					b.Fatalf("%d matched", got)
				}
			}
		})
	}
}

func TestP10CandidatesDoNotFollowTheRegistered(t *testing.T) {
	ix := match.NewIndex(registered(t, 10_000))
	if got := ix.Candidates(nil, reviewOf(codec.Create, "", "v1", "pods", "", "shop")); len(got) != 5 {
		t.Errorf("got %d candidates of 10,000, want the 5 that match", len(got))
	}
}

// A webhook may want what the user sent, where the API server has converted that to
// another group, or to another resource.
func TestCandidatesForWhatWasSent(t *testing.T) {
	for _, sent := range []codec.GroupVersionResource{resourceOf("extensions", "v1beta1", "ingresses"), resourceOf("networking.k8s.io", "v1beta1", "others")} {
		spec := everything()
		spec.MatchPolicy = admissionregistrationv1.Exact
		spec.Rules = []admissionregistrationv1.RuleWithOperations{rule(string(sent.Group), "*", string(sent.Resource))}
		m := compile(t, spec)
		r := reviewOf(codec.Create, "networking.k8s.io", "v1", "ingresses", "", "shop")
		r.RequestResource = sent
		expect(t, m, subjectOf(r), match.NotConvertible)
		if got := match.NewIndex([]*match.Matcher{m}).Candidates(nil, r); len(got) != 1 {
			t.Errorf("%s/%s: candidates %v", sent.Group, sent.Resource, got)
		}
	}
}
