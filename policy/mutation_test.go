// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/policy/schema"
)

func mutating(t testing.TB, text string) *policy.MutationBinding {
	t.Helper()
	var spec admissionregistrationv1.MutatingAdmissionPolicySpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	m, errs := policy.NewCompiler(celenv.NewCompiler()).CompileMutations(&spec, field.NewPath("spec"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return policy.NewMutationBinding(m, "p", "b", nil, schema.BuiltIn())
}

func mutate(v *hook.View, b *policy.MutationBinding, deadline time.Time) *told {
	a := &told{}
	b.Ask(context.Background(), hook.Question{View: v, Deadline: deadline}, hook.NewReceiver(a, 0))
	return a
}

// patches are mutations, each an expression.
func patches(expressions ...string) (text string) {
	for _, x := range expressions {
		text += fmt.Sprintf(", {patchType: JSONPatch, jsonPatch: {expression: '%s'}}", strings.ReplaceAll(x, "'", "''"))
	}
	return "mutations: [" + text[2:] + "]"
}

// configurations are mutations, each an expression of an apply configuration.
func configurations(expressions ...string) (text string) {
	for _, x := range expressions {
		text += fmt.Sprintf(", {patchType: ApplyConfiguration, applyConfiguration: {expression: '%s'}}", strings.ReplaceAll(x, "'", "''"))
	}
	return "mutations: [" + text[2:] + "]"
}

func op(of, path, value string) string {
	return fmt.Sprintf("JSONPatch{op: %q, path: %q, value: %s}", of, path, value)
}

func TestMutations(t *testing.T) {
	invalid := func(message string) codec.Response {
		return codec.Response{Code: 403, Reason: "Invalid", Message: message}
	}
	patched := func(patch string) codec.Response { return codec.Response{Allowed: true, Patch: []byte(patch)} }
	const fails = `[JSONPatch{op: "remove", path: "/nothing"}]`
	for _, row := range []struct {
		name, spec string
		want       codec.Response
		cause      hook.Cause
	}{
		{"H21 in their order, each over what the one before has left", patches("["+op("add", "/spec/a", "1")+"]", "["+op("add", "/spec/b", "object.spec.a + 1")+"]"),
			patched(`[{"op":"add","path":"/spec/a","value":1},{"op":"add","path":"/spec/b","value":2}]`), ""},
		{"H21 variables are of the object as it is", "variables: [{name: a, expression: 'has(object.spec.a)'}]\n" + patches("["+op("add", "/spec/a", "variables.a")+"]", "["+op("add", "/spec/b", "variables.a")+"]"),
			patched(`[{"op":"add","path":"/spec/a","value":false},{"op":"add","path":"/spec/b","value":true}]`), ""},
		{"H21 what changes nothing is no patch", patches("[" + op("add", "/metadata/name", "'web'") + "]"), codec.Response{Allowed: true}, ""},
		{"H21 nor is one of another request", "matchConditions: [{name: c, expression: 'false'}]\n" + patches(fails), codec.Response{Allowed: true}, ""},
		{"H22 a test that does not hold leaves the object as it is", patches("["+op("add", "/spec/a", "1")+"]", "["+op("add", "/spec/b", "1")+", "+op("test", "/spec/a", "2")+"]", "["+op("add", "/spec/c", "3")+"]"),
			patched(`[{"op":"add","path":"/spec/a","value":1},{"op":"add","path":"/spec/c","value":3}]`), ""},
		{"H22 the types of objects", patches("[" + op("add", "/spec/a", "Object.spec.a{b: Object.c{}}") + "]"),
			invalid(`type mismatch: unexpected type name "Object.c", expected "Object.spec.a.b", which matches field name path from root Object type`), ""},
		{"H24 a patch that does not apply", patches("["+op("add", "/spec/a", "1")+"]", fails), invalid("JSON Patch: operation 0 (remove): there is no such member"), ""},
		{"H24 an error", patches("[" + op("add", "/spec/a", "object.nothing") + "]"),
			invalid(`expression '[JSONPatch{op: "add", path: "/spec/a", value: object.nothing}]' resulted in error: no such key: nothing`), ""},
		{"H24 of a condition", "matchConditions: [{name: c, expression: object.nothing == 1}]\n" + patches(fails), invalid("expression 'object.nothing == 1' resulted in error: no such key: nothing"), ""},
		{"H24 too dear an expression", patches("[" + op("add", "/spec/a", costly) + "]"),
			invalid("expression '[" + op("add", "/spec/a", costly) + "]' resulted in error: operation cancelled: actual cost limit exceeded"), ""},
		{"H24 Ignore leaves out one mutation", "failurePolicy: Ignore\n" + patches("["+op("add", "/spec/a", "1")+"]", fails, "["+op("add", "/spec/b", "object.nothing")+"]", "["+op("add", "/spec/c", "3")+"]"),
			patched(`[{"op":"add","path":"/spec/a","value":1},{"op":"add","path":"/spec/c","value":3}]`), hook.Evaluation},
		{"H23 merged", configurations(`Object{metadata: Object.metadata{labels: {"a~b/c": "d"}}}`), patched(`[{"op":"add","path":"/metadata/labels","value":{"a~b/c":"d"}}]`), ""},
		{"H23 a number of another type", configurations(`Object{spec: Object.spec{priority: "high"}}`),
			invalid("error applying patch: failed to convert patch object to typed object: .spec.priority: expected numeric (int or float), got string"), ""},
		{"H23 what is atomic", configurations(`Object{spec: Object.spec{nodeSelector: {"a": "b"}, tolerations: [Object.spec.tolerations{key: "k"}]}}`),
			invalid("error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector, .spec.tolerations"), ""},
		{"H23 the types of objects", configurations(`Object{spec: Object.metadata{}}`),
			invalid(`type mismatch: unexpected type name "Object.metadata", expected "Object.spec", which matches field name path from root Object type`), ""},
		{"H23 Ignore leaves it out", "failurePolicy: Ignore\n" + configurations(`Object{spec: Object.spec{priority: "nothing: "}}`, `Object{spec: Object.spec{priority: 1}}`),
			patched(`[{"op":"add","path":"/spec/priority","value":1}]`), hook.Evaluation},
		{"H27 too long a patch", patches("[" + op("add", "/spec/a", "["+strings.Repeat("object.spec.big, ", 17)+"object.spec.big]") + "]"), invalid("the expression evaluated to more than a patch may have"), ""},
		{"H27 too many operations", patches("object.spec.big.split(\"\", 2001).map(x, " + op("add", "/spec/a", "x") + ")"), invalid("JSON Patch: the patch has more than 2000 operations"), ""},
		{"H27 of all mutations", patches("object.spec.big.split(\"\", 1999).map(x, "+op("add", "/spec/a", "x")+")", "["+op("add", "/spec/b", "1")+"]", "["+op("add", "/spec/c", "1")+"]"),
			invalid("the mutations of the policy are more than 2000 operations, or than 1048576 bytes"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := mutate(viewOf(t), mutating(t, row.spec), time.Time{})
			if diff := cmp.Diff(row.want, got.resp); diff != "" {
				t.Errorf("(-want +got):\n%.2000s", diff)
			}
			var call *hook.CallError
			if errors.As(got.err, &call); (call != nil) != (row.cause != "") || call != nil && (call.Cause != row.cause || strings.Contains(call.Error(), "nothing: ")) {
				t.Errorf("error %v", got.err)
			}
		})
	}
}

// H24 Each mutation has a budget of its own, of which its variables are paid, too.
func TestBudgetOfMutations(t *testing.T) {
	variables, uses := "", "true"
	for i := range 19 {
		variables += fmt.Sprintf(", {name: v%d, expression: \"%s\"}", i, dear)
		uses += fmt.Sprintf(" && variables.v%d", i)
	}
	for n, want := range map[int]bool{18: true, 19: false} {
		all := strings.Join(strings.Split(uses, " && ")[:n+1], " && ")
		one := "[" + op("add", "/spec/a", all) + "]"
		two := "[" + op("add", "/spec/b", all) + "]"
		got := mutate(viewOf(t), mutating(t, "variables: ["+variables[2:]+"]\n"+patches(one, two)), time.Time{})
		if got.resp.Allowed != want || want == strings.Contains(got.resp.Message, "running out of cost budget") {
			t.Errorf("%d: %.300s, %v", n, got.resp.Message, got.err)
		}
	}
}

// H21 There is nothing to mutate of what is deleted, and of what nobody stores.
func TestNothingToMutate(t *testing.T) {
	b := mutating(t, patches(`[JSONPatch{op: "remove", path: "/metadata"}]`))
	for _, operation := range []codec.Operation{codec.Delete, codec.Connect} {
		v := viewOf(t)
		v.Review.Operation = operation
		if operation == codec.Delete {
			v.Review.Object.Raw = nil
		}
		if got := mutate(v, b, time.Time{}); !got.resp.Allowed || got.resp.Patch != nil || got.err != nil {
			t.Errorf("%s: %+v", operation, got)
		}
	}
}

// H27 Mutations that are not evaluated by the deadline have changed nothing.
func TestDeadlineOfMutations(t *testing.T) {
	b := mutating(t, "failurePolicy: Ignore\n"+patches("["+op("add", "/spec/a", "1")+"]"))
	v := viewOf(t)
	var call *hook.CallError
	if got := mutate(v, b, time.Now().Add(-time.Second)); !errors.As(got.err, &call) || call.Cause != hook.Timeout || got.resp.Patch != nil {
		t.Errorf("%+v", got)
	}
	if got := mutate(v, b, time.Now().Add(time.Hour)); got.resp.Patch == nil || got.err != nil {
		t.Errorf("the next one is not evaluated: %+v", got)
	}
}

// H10 Policies that say the same are compiled once.
func TestMutationsAreKept(t *testing.T) {
	c := policy.NewCompiler(celenv.NewCompiler())
	spec := &admissionregistrationv1.MutatingAdmissionPolicySpec{Mutations: []admissionregistrationv1.Mutation{{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[JSONPatch{}]"},
	}}}
	for range 3 {
		if _, errs := c.CompileMutations(spec, nil); len(errs) > 0 {
			t.Fatal(errs)
		}
		c.Begin()
	}
	spec.Mutations = append(spec.Mutations, spec.Mutations[0])
	if _, errs := c.CompileMutations(spec, nil); len(errs) > 0 || c.Compiled() != 2 {
		t.Errorf("%d compiled, %v", c.Compiled(), errs)
	}
}

// What each mutation came to, and the variables over the object before it.
func TestExplainMutations(t *testing.T) {
	b := mutating(t, "failurePolicy: Ignore\nmatchConditions: [{name: c, expression: 'true'}]\nvariables: [{name: a, expression: 'object.spec.?a.orValue(0)'}]\n"+
		patches("["+op("add", "/spec/a", "variables.a + 1")+"]", "["+op("add", "/spec/b", "object.nothing")+"]", "["+op("add", "/spec/a", "variables.a")+"]", "["+op("add", "/spec/c", "1")+"]"))
	x, err := b.Explain(viewOf(t))
	want := hook.Explanation{
		Answer: `fails: no such key: nothing; allows and changes the object: [{"op":"add","path":"/spec/a","value":1},{"op":"add","path":"/spec/c","value":1}]`,
		Steps: []string{
			"matchConditions[0]: true",
			"variables.a: 0", `mutations[0]: [{"op":"add","path":"/spec/a","value":1}]`,
			`mutations[1]: expression '[JSONPatch{op: "add", path: "/spec/b", value: object.nothing}]' resulted in error: no such key: nothing`,
			"mutations[2]: changes nothing",
			"variables.a: 1", `mutations[3]: [{"op":"add","path":"/spec/c","value":1}]`,
		},
	}
	if diff := cmp.Diff(want, x); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// H23 What is of no built-in kind cannot be merged into, in the words and with the code of
// kube-apiserver.
func TestKindsThatAreNotKnown(t *testing.T) {
	for policy, want := range map[string]codec.Response{
		"":                        {Code: 503, Reason: "ServiceUnavailable", Message: "Resource kind example.com/v1, Kind=Pod not found. There can be a delay between when CustomResourceDefinitions are created and when they are available."},
		"failurePolicy: Ignore\n": {Allowed: true},
	} {
		v := viewOf(t)
		v.Review.Kind.Group = []byte("example.com")
		got := mutate(v, mutating(t, policy+configurations(`Object{spec: Object.spec{a: 1}}`)), time.Time{})
		if diff := cmp.Diff(want, got.resp); diff != "" || (got.err != nil) != want.Allowed {
			t.Errorf("%v (-want +got):\n%s", got.err, diff)
		}
	}
}

// published are the kinds of a cluster.
type published struct {
	types *schema.Types
	err   error
}

func (p published) Types(apischema.GroupVersion, time.Time) (*schema.Types, error) {
	return p.types, p.err
}

// H30 A kind that the sources do not know is merged as the cluster says that asks; where it
// cannot say, and does not have the kind, that is told. Explain does not ask it.
func TestKindsOfTheCluster(t *testing.T) {
	const notFound = "Resource kind example.com/v1, Kind=Pod not found. There can be a delay between when CustomResourceDefinitions are created and when they are available."
	types, _, err := schema.ReadDocument(strings.NewReader(`{"components":{"schemas":{"p":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Pod"}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		of       published
		resp     codec.Response
		explains string
	}{
		{published{types: types}, codec.Response{Allowed: true, Patch: []byte(`[{"op":"add","path":"/spec/a","value":1}]`)}, `allows and changes the object: [{"op":"add","path":"/spec/a","value":1}]`},
		{published{types: schema.BuiltIn()}, codec.Response{Code: 503, Reason: "ServiceUnavailable", Message: notFound}, "denies: " + notFound},
		{published{err: errors.New("it hangs")}, codec.Response{Code: 503, Reason: "ServiceUnavailable", Message: notFound + " The types of the cluster's kinds are not known: it hangs."},
			"denies: " + notFound + " The types of the cluster's kinds are not known: it hangs."},
		{published{err: hook.ErrNotAsked}, codec.Response{Code: 503, Reason: "ServiceUnavailable", Message: notFound + " The types of the cluster's kinds are not known: the cluster was not asked."},
			"depends on what the cluster stores, which was not asked"},
	} {
		v := viewOf(t)
		v.Review.Kind.Group, v.Caller = []byte("example.com"), &caller{kinds: row.of}
		b := mutating(t, configurations(`Object{spec: Object.spec{a: 1}}`))
		if diff := cmp.Diff(row.resp, mutate(v, b, time.Time{}).resp); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if x, err := b.Explain(v); err != nil || x.Answer != row.explains {
			t.Errorf("%v, %s", err, x.Answer)
		}
	}
}
