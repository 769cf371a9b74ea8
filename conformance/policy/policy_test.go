// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestPolicies has random policies decide random requests, with random params, in the API server's own dispatcher
// of ValidatingAdmissionPolicies and in ours. The verdict, its code, reason and text, the
// warnings and the audit annotations are equal (H1 H2 H3 H4 H5 H8 H11 H14 J1).
func TestPolicies(t *testing.T) {
	pairs, seed := number(t, "CONFORMANCE_N", 2000), number(t, "CONFORMANCE_SEED", 1)
	oracle, ours := newPolicyOracle(t), newPolicySubject(t)
	came := map[string]int{}
	for i := range pairs / reviewsOfPolicies {
		g := &policySource{rand.New(rand.NewPCG(seed, i))}
		policies, bindings := g.policies()
		params := g.withParams(policies, bindings)
		if !ours.load(t, policies, bindings, params...) {
			continue // an expression that does not compile: no API server stores it
		}
		hooks := oracle.hooks(policies, bindings, params...)
		for range reviewsOfPolicies {
			a := g.request()
			want, got := oracle.decide(t, hooks, a), ours.decide(t, a)
			came[want.kind()]++
			if !want.Allowed {
				came["denied "+a.shape()]++
			}
			want, got = want.withoutGoTypes().short(), got.withoutGoTypes().short()
			if diff := cmp.Diff(want, got.as(want)); diff != "" {
				text, _ := json.MarshalIndent([]any{policies, bindings, params, a}, "", " ")
				t.Fatalf("seed %d, policies %d (-oracle +ours):\n%s\n%s", seed, i, diff, text)
			}
		}
	}
	t.Log(came, ours.loaded, "loads,", len(ours.refused), "refused")
	if len(ours.refused) > ours.loaded {
		t.Errorf("most are refused: %v", ours.refused[0])
	}
	for _, kind := range []string{"allowed", "denied", "warned", "annotated", "error", "unconfigured",
		"denied CREATE pods", "denied UPDATE pods/status", "denied CONNECT pods/exec", "denied UPDATE namespaces", "denied CREATE nodes", "denied CREATE pods without a name"} {
		if came[kind] == 0 {
			t.Errorf("no pair was %s: %v", kind, came)
		}
	}
}

// What the validations leave of the budget is too little for a message, which the API
// server evaluates although everything holds; or is just enough (H5).
func TestPoliciesThatRunOut(t *testing.T) {
	oracle, ours := newPolicyOracle(t), newPolicySubject(t)
	const dear = "!object.metadata.annotations.big.contains(object.metadata.annotations.pattern)" // some 540,000 units
	g := &policySource{rand.New(rand.NewPCG(1, 1))}
	for _, row := range []struct {
		validations int
		variable    string
	}{{17, "'a'"}, {18, "'a'"}, {17, dear + " ? 'a' : 'b'"}} {
		p := &validating.Policy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{g.rule()}}
		rule := &p.Spec.MatchConstraints.ResourceRules[0]
		rule.Operations, rule.APIGroups, rule.Resources, rule.Scope, rule.ResourceNames = []admissionregistrationv1.OperationType{"*"}, []string{""}, []string{"pods"}, nil, nil
		p.Spec.MatchConstraints.MatchPolicy = pointer(admissionregistrationv1.Exact)
		p.Spec.MatchConstraints.NamespaceSelector, p.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
		p.Spec.FailurePolicy = pointer(admissionregistrationv1.Fail)
		p.Spec.Variables = []admissionregistrationv1.Variable{{Name: "a", Expression: row.variable}}
		for range row.validations {
			p.Spec.Validations = append(p.Spec.Validations, admissionregistrationv1.Validation{Expression: dear})
		}
		p.Spec.Validations[0].MessageExpression = dear + " ? variables.a : 'b'"
		b := &validating.PolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
		b.Spec.PolicyName, b.Spec.ValidationActions = "p", []admissionregistrationv1.ValidationAction{"Deny"}
		if !ours.load(t, []*validating.Policy{p}, []*validating.PolicyBinding{b}) {
			t.Fatal(ours.refused)
		}
		a := g.admission()
		a.Operation, a.Old = admission.Create, nil
		pod := g.pod()
		pod.Name, pod.Namespace = a.Name, a.Namespace
		pod.Annotations = map[string]string{"big": strings.Repeat("a", 60_000), "pattern": strings.Repeat("z", 900)}
		a.New = pod
		want, got := oracle.decide(t, oracle.hooks([]*validating.Policy{p}, []*validating.PolicyBinding{b}), a), ours.decide(t, a)
		if diff := cmp.Diff(want, got.as(want)); diff != "" || want.Allowed != (row.validations == 17 && row.variable == "'a'") {
			t.Errorf("%d validations, variable %.10s (-oracle +ours):\n%s", row.validations, row.variable, diff)
		}
	}
}

const reviewsOfPolicies = 10

// decided is what somebody came to.
type decided struct {
	Allowed     bool
	Code        int32
	Reason      string
	Message     string
	Warnings    []string
	Annotations map[string]string
}

func (d *decided) kind() string {
	switch {
	case strings.Contains(d.Message, "failed to configure"):
		return "unconfigured"
	case strings.Contains(d.Message, "resulted in error"):
		return "error"
	case !d.Allowed:
		return "denied"
	case len(d.Warnings) > 0:
		return "warned"
	case len(d.Annotations) > 0:
		return "annotated"
	}
	return "allowed"
}

// as returns d as the oracle would say it: it tells the first denial alone.
func (d decided) as(oracle decided) decided {
	if d.Message == oracle.Message || strings.HasPrefix(d.Message, oracle.Message+"\n") {
		d.Message = oracle.Message
	}
	return d
}

// short returns d with as many warnings as are told whatever else there is to tell: 4,096
// runes are, at most (C24).
func (d decided) short() decided {
	left := 2048
	for i, w := range d.Warnings {
		if left -= len(w); left < 0 {
			d.Warnings = d.Warnings[:i]
			break
		}
	}
	return d
}

// goType is how CEL names the type of a value in Go that cannot be a key, which may be
// cut.
var goType = regexp.MustCompile(`\*[a-z]+(\.[a-zA-Z]*)?`)

// withoutGoTypes returns d without the names of types in Go, which are not ours to have.
func (d decided) withoutGoTypes() decided {
	clean := func(text string) string { return goType.ReplaceAllString(text, "*T") }
	d.Message, d.Warnings, d.Annotations = clean(d.Message), slices.Clone(d.Warnings), maps.Clone(d.Annotations)
	for i, w := range d.Warnings {
		d.Warnings[i] = clean(w)
	}
	for key, value := range d.Annotations {
		d.Annotations[key] = clean(value)
	}
	return d
}

// policyAdmission is one request.
type policyAdmission struct {
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	Name        string
	Namespace   string
	Operation   admission.Operation
	Old, New    runtime.Object
	Groups      []string // of the user; nil: dev and ops
}

func (a *policyAdmission) user() user.Info {
	groups := a.Groups
	if groups == nil {
		groups = []string{"dev", "ops"}
	}
	return &user.DefaultInfo{Name: "ada", Groups: groups}
}

// shape says what the request is about.
func (a *policyAdmission) shape() string {
	text := string(a.Operation) + " " + a.Resource.Resource
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	if a.Name == "" {
		text += " without a name"
	}
	return text
}

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
