// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/policy"
)

func mutatingWith(t testing.TB, text string, params *policy.Params) *policy.MutationBinding {
	t.Helper()
	var spec admissionregistrationv1.MutatingAdmissionPolicySpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	m, errs := policy.NewCompiler(celenv.NewCompiler()).CompileMutations(&spec, field.NewPath("spec"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return policy.NewMutationBinding(m, "p", "b", params, nil)
}

// H25 The mutations are made with each param, in the order of the params; the first that
// fails is the last.
func TestMutationsWithParams(t *testing.T) {
	const text = "paramKind: {apiVersion: v1, kind: ConfigMap}\nvariables: [{name: max, expression: 'int(params.data.max)'}]\n"
	list := []*hook.Stored{limits("shop", "a", 1, "pods"), limits("shop", "b", 2, "pods"), limits("shop", "c", 3, "pods")}
	p := paramsOf(t, refTo("", "", "Deny", "pods"), list...)
	append1 := "[" + op("add", "/spec/a", "object.spec.?a.orValue(0) + variables.max") + "]"
	account := &turns{}
	v := asking(t, nil, "shop")
	v.Account = account
	b := mutatingWith(t, text+patches(append1), p)
	got := mutate(v, b, time.Now().Add(time.Hour))
	const want = `[{"op":"add","path":"/spec/a","value":1},{"op":"add","path":"/spec/a","value":3},{"op":"add","path":"/spec/a","value":6}]`
	size := len(v.Object.Raw) + len(list[0].JSON) + len(list[1].JSON) + len(list[2].JSON)
	if string(got.resp.Patch) != want || got.err != nil || !slices.Equal(account.sizes, []int{size}) || account.open != 0 {
		t.Errorf("%s, %v; turns of %v, not %d; %d are held", got.resp.Patch, got.err, account.sizes, size, account.open)
	}
	x, err := b.Explain(asking(t, nil, "shop"))
	if err != nil || x.Answer != "allows and changes the object: "+want || x.Steps[0] != "params: ConfigMap of the registry shop/a" ||
		!slices.Contains(x.Steps, "params: ConfigMap of the registry shop/c") || !slices.Contains(x.Steps, "variables.max: 3") {
		t.Errorf("%q, %v", x, err)
	}
	// Another binding of the same policy has params of its own, and shares nothing.
	var spec admissionregistrationv1.MutatingAdmissionPolicySpec
	if err := yaml.UnmarshalStrict([]byte(text+patches(append1)), &spec); err != nil {
		t.Fatal(err)
	}
	m, _ := policy.NewCompiler(celenv.NewCompiler()).CompileMutations(&spec, nil)
	mutate(v, policy.NewMutationBinding(m, "p", "b", p, nil), time.Time{})
	other := mutate(v, policy.NewMutationBinding(m, "p", "c", paramsOf(t, refTo("c", "", "Deny"), list...), nil), time.Time{})
	if string(other.resp.Patch) != `[{"op":"add","path":"/spec/a","value":3}]` {
		t.Errorf("with another param: %s", other.resp.Patch)
	}
	if other := mutatingWith(t, text+patches(append1), nil); b.Params != "ConfigMap of the registry" || b.Sum == other.Sum || other.Params != "" {
		t.Errorf("%+v, %+v", b, other)
	}
	failing := mutate(asking(t, nil, "shop"), mutatingWith(t, text+patches("["+op("add", "/spec/a", "variables.max == 2 ? object.none : variables.max == 3 ? object.later : 1")+"]"), p), time.Time{})
	if !strings.HasSuffix(failing.resp.Message, "no such key: none") || failing.resp.Allowed || failing.resp.Patch != nil {
		t.Errorf("%+v", failing.resp)
	}
}

// H25 Params that are not known, or missing where they must not be, deny; Ignore skips the
// policy, visibly. A namespace that is not known denies in any case.
func TestMutationsWithoutParams(t *testing.T) {
	const text = "paramKind: {apiVersion: v1, kind: ConfigMap}\n"
	const missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
	one := patches("[" + op("add", "/spec/a", "1") + "]")
	p := paramsOf(t, refTo("none", "", "Deny"))
	got := mutate(asking(t, nil, "shop"), mutatingWith(t, text+one, p), time.Time{})
	if diff := cmp.Diff(codec.Response{Code: 403, Reason: "Forbidden", Message: missing}, got.resp); diff != "" || got.err != nil {
		t.Errorf("%v %s", got.err, diff)
	}
	got = mutate(asking(t, nil, "shop"), mutatingWith(t, text+"failurePolicy: Ignore\n"+one, p), time.Time{})
	if call, ok := errors.AsType[*hook.CallError](got.err); !ok || call.Cause != hook.Evaluation || call.Error() != missing {
		t.Errorf("under Ignore %v", got.err)
	}
	for failurePolicy, want := range map[string]string{"Fail": "denies: " + missing, "Ignore": "fails: " + missing} {
		if x, err := mutatingWith(t, text+"failurePolicy: "+failurePolicy+"\n"+one, p).Explain(asking(t, nil, "shop")); x.Answer != want || err != nil {
			t.Errorf("%s is explained as %+v, %v", failurePolicy, x, err)
		}
	}
	none := mutatingWith(t, text+one, paramsOf(t, refTo("none", "", "Allow")))
	if got = mutate(asking(t, nil, "shop"), none, time.Time{}); !got.resp.Allowed || got.resp.Patch != nil || got.err != nil {
		t.Errorf("without params: %+v", got)
	}
	if x, err := none.Explain(asking(t, nil, "shop")); x.Answer != "allows" || err != nil {
		t.Errorf("without params it is explained as %+v, %v", x, err)
	}
	for _, failurePolicy := range []string{"Fail", "Ignore"} {
		b := mutatingWith(t, "failurePolicy: "+failurePolicy+"\n"+patches("["+op("add", "/spec/a", "namespaceObject.metadata.name")+"]"), nil)
		c := &caller{objects: map[schema.GroupVersionResource]hook.Objects{policy.Namespaces(): unsynced{}}}
		if refusal, ok := errors.AsType[*hook.Refusal](mutate(asking(t, c, "shop"), b, time.Time{}).err); !ok || refusal.Code != 403 {
			t.Errorf("%s: a namespace that is not known: %v", failurePolicy, refusal)
		}
		if x, _ := b.Explain(asking(t, nil, "shop")); x.Answer != "depends on what the cluster stores, which was not asked" {
			t.Errorf("%s: explained as %+v", failurePolicy, x)
		}
	}
}

// H27 A mutation takes its cluster's turn for what it looks at: the object, the old one if an
// expression may look at it, and nothing where there is no object.
func TestTurnsOfMutations(t *testing.T) {
	for text, size := range map[string]func(v *hook.View) []int{
		patches("[" + op("add", "/spec/a", "1") + "]"):                                                                   func(v *hook.View) []int { return []int{len(v.Object.Raw)} },
		patches("[" + op("add", "/spec/a", "oldObject.metadata.name") + "]"):                                             func(v *hook.View) []int { return []int{len(v.Object.Raw) + len(v.Review.OldObject.Raw)} },
		"variables: [{name: v, expression: oldObject}]\n" + patches("["+op("add", "/spec/a", "variables.v != null")+"]"): func(v *hook.View) []int { return []int{len(v.Object.Raw) + len(v.Review.OldObject.Raw)} },
		patches("["+op("add", "/spec/a", "oldObject.metadata.name")+"]", "["+op("add", "/spec/a", "1")+"]"):              func(v *hook.View) []int { return []int{len(v.Object.Raw) + len(v.Review.OldObject.Raw)} },
	} {
		v, account := updating(t), &turns{}
		v.Account = account
		if got := mutate(v, mutating(t, text), time.Time{}); !slices.Equal(account.sizes, size(v)) || account.open != 0 || got.err != nil {
			t.Errorf("%s: turns of %v, not %v; %d are held; %v", text, account.sizes, size(v), account.open, got.err)
		}
	}
	v, account := viewOf(t), &turns{}
	v.Account, v.Review.Operation, v.Review.Object.Raw = account, codec.Delete, nil
	if mutate(v, mutating(t, patches("["+op("add", "/spec/a", "1")+"]")), time.Time{}); account.sizes != nil {
		t.Errorf("without an object: turns of %v", account.sizes)
	}
	v, account = viewOf(t), &turns{}
	v.Account = account
	b := bindingOf(t, `{variables: [{name: v, expression: object.metadata.name}], validations: [{expression: "variables.v == 'web'"}, {expression: "request.name == 'web'"}]}`, "", nil, "Deny")
	if got := ask(v, b, time.Time{}); !slices.Equal(account.sizes, []int{len(v.Object.Raw)}) || account.open != 0 || !got.resp.Allowed {
		t.Errorf("by a variable: turns of %v; %d are held; %+v", account.sizes, account.open, got)
	}
}

// H1 What is compiled of expressions that are wrong, blank, or look at the namespace.
func TestCompiledExpressions(t *testing.T) {
	c := policy.NewCompiler(celenv.NewCompiler())
	_, errs := c.Compile(specOf(t, `{matchConditions: [{name: a, expression: objekt.a}], variables: [{name: b, expression: "1 +"}], validations: [{expression: "1"}]}`), field.NewPath("spec"))
	var got []string
	for _, err := range errs {
		got = append(got, err.Field+": "+err.Detail)
	}
	want := []string{
		"spec.matchConditions[0].expression: compilation failed: ERROR: <input>:1:1: undeclared reference to 'objekt' (in container '')",
		"spec.variables[0].expression: compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
		"spec.validations[0].expression: must evaluate to bool but got int",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	blank := `{matchConditions: [{name: a, expression: " "}], variables: [{name: b, expression: ""}], validations: [{expression: "\t"}]}`
	if _, errs := c.Compile(specOf(t, blank), nil); len(errs) > 0 {
		t.Errorf("blank expressions, which others refuse: %v", errs)
	}
	for text, want := range map[string]string{
		`{validations: [{expression: "namespaceObject.metadata.name == 'a'"}, {expression: "namespaceObject.metadata.labels.a == 'b'"}]}`: "spec.validations[0].expression",
		`{validations: [{expression: "namespaceObject.metadata.name == 'a'"}, {expression: "namespaceObject.status.phase == 'b'"}]}`:      "spec.validations[1].expression",
		`{variables: [{name: a, expression: "namespaceObject.metadata.name"}], validations: [{expression: "true"}]}`:                      "spec.variables",
		`{validations: [{expression: "true", messageExpression: "namespaceObject.metadata.name"}]}`:                                       "spec.validations[0].messageExpression",
		`{validations: [{expression: "true"}], auditAnnotations: [{key: a, valueExpression: "namespaceObject.metadata.name"}]}`:           "spec.auditAnnotations[0].valueExpression",
		`{validations: [{expression: "request.namespace == 'a'"}]}`:                                                                       "<nil>",
	} {
		if use, at := compile(t, text).Namespace(); at.String() != want || (use == celenv.NamespaceUnused) != (at == nil) {
			t.Errorf("%s looks at %v by %s", text, use, at)
		}
	}
	// Params that are declared make another policy, of whatever kind they are.
	params := func(kind string) *policy.Policy {
		p, errs := c.Compile(specOf(t, "{"+kind+"validations: [{expression: 'true'}]}"), nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return p
	}
	if one := params("paramKind: {apiVersion: v1, kind: A}, "); one != params("paramKind: {apiVersion: v1, kind: B}, ") || one == params("") {
		t.Error("policies with params are told apart by their kind, or not from those without")
	}
	texts := bindingOf(t, `{validations: [{expression: " true "}, {expression: "1 == 1"}]}`, "", nil, "Deny").Validations()
	more := mutating(t, patches(" [JSONPatch{}] ", "[ JSONPatch{}]")).Mutations()
	if !slices.Equal(texts, []string{"true", "1 == 1"}) || !slices.Equal(more, []string{"[JSONPatch{}]", "[ JSONPatch{}]"}) {
		t.Errorf("%q, %q", texts, more)
	}
}

// H9 What denies when time is up stands: nobody behind it could have allowed.
func TestDenialsStandWhenTimeIsUp(t *testing.T) {
	const long = "object.spec.big.split('', 500).all(x, variables.list.all(y, x == y || y != ''))"
	for name, text := range map[string]string{
		"a validation":      `{variables: [{name: list, expression: "object.spec.big.split('', 500)"}], validations: [{expression: 'false', message: denied}, {expression: "` + long + `"}]}`,
		"a message":         `{variables: [{name: list, expression: "object.spec.big.split('', 500)"}], validations: [{expression: 'false', message: denied, messageExpression: "` + long + ` ? 'a' : 'b'"}], auditAnnotations: [{key: k, valueExpression: "'late'"}]}`,
		"after an allowing": `{variables: [{name: list, expression: "object.spec.big.split('', 500)"}], validations: [{expression: 'true', message: not this}, {expression: 'false', message: denied}, {expression: "` + long + `"}]}`,
	} {
		b := bindingOf(t, text, "", nil, "Deny")
		// Some deadline is after the first validation, and before the end of the long one.
		for patience := 20 * time.Microsecond; ; patience += patience / 4 {
			got := ask(viewOf(t), b, time.Now().Add(patience))
			if got.resp.Message == "denied" && got.err == nil && got.resp.Annotations == nil {
				break
			}
			if patience > time.Minute {
				t.Fatalf("%s: %+v", name, got)
			}
		}
	}
}

// H2 H4 H5 What an answer says, at its bounds.
func TestBoundsOfAnswers(t *testing.T) {
	conditions := func(n int) string {
		text := ""
		for range n {
			text += ", {name: c, expression: \"" + dear + "\"}"
		}
		return text[2:]
	}
	long := strings.Repeat("a", 5<<10)
	many := strings.Repeat(", {expression: 'false', message: m}", 101)[2:]
	for name, row := range map[string]struct {
		spec string
		want func(got *told) bool
	}{
		"conditions that cost less than they may": {"{matchConditions: [" + conditions(4) + "], validations: [{expression: 'false', message: a}]}", func(got *told) bool { return got.resp.Message == "a" }},
		"conditions that cost more": {"{matchConditions: [" + conditions(5) + "], validations: [{expression: 'false', message: a}]}", func(got *told) bool {
			return strings.Contains(got.resp.Message, "cost budget")
		}},
		"a false condition before a true one": {"{matchConditions: [{name: a, expression: 'false'}, {name: b, expression: 'true'}], validations: [{expression: 'false'}]}", func(got *told) bool { return got.resp.Allowed }},
		"Fail, in so many words":              {"{failurePolicy: Fail, validations: [{expression: 'object.nothing == 1'}]}", func(got *told) bool { return got.err == nil && got.resp.Code == 422 }},
		"the longest message":                 {`{validations: [{expression: 'false', message: b, messageExpression: "'` + long + `'"}]}`, func(got *told) bool { return got.resp.Message == long }},
		"a longer one":                        {`{validations: [{expression: 'false', message: b, messageExpression: "'` + long + `b'"}]}`, func(got *told) bool { return got.resp.Message == "b" }},
		"Ignore beside an annotation": {"{failurePolicy: Ignore, auditAnnotations: [{key: k, valueExpression: \"'v'\"}]}", func(got *told) bool {
			return got.err == nil && cmp.Equal(got.resp.Annotations, []codec.Annotation{{Key: "k", Value: "v"}})
		}},
		"all denials of one param": {"{validations: [" + many + "]}", func(got *told) bool { return strings.Count(got.resp.Message, "m") == 101 }},
	} {
		if got := ask(viewOf(t), bindingOf(t, row.spec, "", nil, "Deny"), time.Time{}); !row.want(got) {
			t.Errorf("%s: %.300s, %v", name, got.resp.Message, got.err)
		}
	}
	var call *hook.CallError
	if got := ask(viewOf(t), bindingOf(t, "validations: [{expression: 'true'}]", "", nil, "Deny"), time.Now().Add(-time.Second)); !errors.As(got.err, &call) || call.Elapsed <= 0 {
		t.Errorf("what is late has taken %v", call)
	}
}

// What explain tells of a value has at most 1 KiB, and nothing of what was not evaluated.
func TestExplainedValues(t *testing.T) {
	text := func(n int) string { return strings.Repeat("a", n) }
	for n, want := range map[int]string{1022: `"` + text(1022) + `"`, 1023: `"` + text(1023) + " ..."} {
		b := bindingOf(t, "{validations: [{expression: 'true', messageExpression: \"'unseen'\"}], auditAnnotations: [{key: k, valueExpression: \"'"+text(n)+"'\"}]}", "", nil, "Deny")
		if x, err := b.Explain(viewOf(t)); !slices.Equal(x.Steps, []string{"validations[0]: true", "auditAnnotations[k]: " + want}) || x.Answer != "allows" || err != nil {
			t.Errorf("%d: %q, %v", n, x, err)
		}
	}
	ends := mutating(t, patches("["+op("add", "/spec/a", "object.none")+"]", "["+op("add", "/spec/b", "1")+"]"))
	if x, _ := ends.Explain(viewOf(t)); len(x.Steps) != 1 || x.Answer != "denies: "+strings.TrimPrefix(x.Steps[0], "mutations[0]: ") {
		t.Errorf("after a failure: %q", x)
	}
	ignored := mutating(t, "failurePolicy: Ignore\n"+patches("["+op("add", "/spec/a", "object.none")+"]"))
	if x, _ := ignored.Explain(viewOf(t)); x.Answer != "fails: no such key: none" {
		t.Errorf("a failure that is ignored: %q", x)
	}
}

// H23 What is merged has the type that the object has, whatever the configuration says, and
// what is atomic is told with its place.
func TestMergedTypes(t *testing.T) {
	got := mutate(viewOf(t), mutating(t, configurations(`Object{apiVersion: "v9", kind: "Node", spec: Object.spec{priority: 1}}`)), time.Time{})
	if string(got.resp.Patch) != `[{"op":"add","path":"/spec/priority","value":1}]` {
		t.Errorf("%s, %s", got.resp.Patch, got.resp.Message)
	}
	untyped := viewOfText(t, nil, strings.Replace(review, `"object":{"apiVersion":"v1","kind":"Pod",`, `"object":{`, 1))
	got = mutate(untyped, mutating(t, configurations(`Object{apiVersion: "v9", kind: "Node", spec: Object.spec{priority: 1}}`)), time.Time{})
	if string(got.resp.Patch) != `[{"op":"add","path":"/spec/priority","value":1}]` {
		t.Errorf("without a type: %s, %s", got.resp.Patch, got.resp.Message)
	}
	got = mutate(viewOf(t), mutating(t, configurations(`Object{spec: Object.spec{containers: [Object.spec.containers{name: "a"}, Object.spec.containers{name: "b", command: ["x"]}]}}`)), time.Time{})
	if want := "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[1].command"; got.resp.Message != want {
		t.Errorf("%q, want %q", got.resp.Message, want)
	}
	got = mutate(viewOf(t), mutating(t, "failurePolicy: Ignore\n"+configurations(`Object{spec: Object.spec{priority: "high"}}`)), time.Time{})
	if got.err == nil || got.err.Error() != "error applying patch" {
		t.Errorf("what quotes the object is told under Ignore: %v", got.err)
	}
	null := viewOfText(t, nil, review[:strings.Index(review, `"object":`)]+`"object":null}}`)
	if got := mutate(null, mutating(t, patches("["+op("add", "/spec", "1")+"]")), time.Time{}); !got.resp.Allowed || got.resp.Patch != nil || got.err != nil {
		t.Errorf("null is mutated: %+v", got)
	}
}

// H27 All mutations of a policy together may have 2,000 operations, and 1 MiB.
func TestBoundsOfMutations(t *testing.T) {
	most := "object.spec.big.split(\"\", 1999).map(x, " + op("add", "/spec/a", "x") + ")"
	if got := mutate(viewOf(t), mutating(t, patches(most, "["+op("add", "/spec/b", "1")+"]")), time.Time{}); !got.resp.Allowed {
		t.Errorf("2,000 operations: %.200s", got.resp.Message)
	}
	big := "[" + op("add", "/spec/a", "["+strings.Repeat("object.spec.big, ", 9)+"object.spec.big]") + "]"
	other := strings.Replace(big, "/spec/a", "/spec/b", 1)
	if got := mutate(viewOf(t), mutating(t, patches(big, other)), time.Time{}); got.resp.Message != "the mutations of the policy are more than 2000 operations, or than 1048576 bytes" {
		t.Errorf("1.2 MB: %.200s", got.resp.Message)
	}
}
