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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/policy"
)

// review has an object with texts in which it is dear, and quick, to search.
var review = strings.NewReplacer("BIG", strings.Repeat("a", 60_000), "PATTERN", strings.Repeat("z", 900)).Replace(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
	"uid":"u1","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},
	"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ada"},
	"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"big":"BIG","pattern":"PATTERN"}}}}`)

func specOf(t testing.TB, text string) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	var spec admissionregistrationv1.ValidatingAdmissionPolicySpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

func compile(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, errs := policy.NewCompiler(celenv.NewCompiler()).Compile(specOf(t, text), field.NewPath("spec"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

func viewOf(t testing.TB) *hook.View {
	t.Helper()
	return viewOfText(t, nil, review)
}

// told is the answer to one Question.
type told struct {
	resp codec.Response
	err  error
}

func (a *told) Answered(_ uint64, resp codec.Response, err error) { a.resp, a.err = resp, err }

func ask(v *hook.View, b *policy.Binding, deadline time.Time) *told {
	a := &told{}
	b.Ask(context.Background(), hook.Question{View: v, Deadline: deadline}, hook.NewReceiver(a, 0))
	return a
}

// dear costs more than half of what an expression may cost, costly more than all of it.
const (
	dear   = "!object.spec.big.contains(object.spec.pattern)"
	costly = dear + " && " + dear
)

// dearAnnotations are more than the budget of annotations pays for.
var dearAnnotations = func() (text string) {
	for i := range 19 {
		text += fmt.Sprintf(", {key: k%d, valueExpression: \"%s ? 'a' : 'b'\"}", i, dear)
	}
	return text
}()

func TestAnswers(t *testing.T) {
	for _, row := range []struct {
		name, spec string
		actions    string
		want       codec.Response
		cause      hook.Cause
	}{
		{"H2 the reason and the code are of the first", "validations: [{expression: 'false', message: ' a ', reason: RequestEntityTooLarge}, {expression: 'false', message: b, reason: Forbidden}]", "Deny",
			codec.Response{Code: 413, Reason: "RequestEntityTooLarge", Message: "a\nb"}, ""},
		{"H2 a messageExpression goes before a message", "validations: [{expression: 'false', message: b, messageExpression: \"' said '\"}]", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "said"}, ""},
		{"H2 one that fails does not", "validations: [{expression: 'false', message: b, messageExpression: 'object.nothing'}]", "Deny", codec.Response{}, "invalid"},
		{"H2 one that has no result does not", "validations: [{expression: 'false', message: b, messageExpression: \"string(object.nothing)\"}]", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "b"}, ""},
		{"H2 nor one with a line feed", `validations: [{expression: 'false', messageExpression: "'a\\nb'"}]`, "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "failed expression: false"}, ""},
		{"H2 nor a blank one", `validations: [{expression: ' false ', messageExpression: "' '"}]`, "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "failed expression: false"}, ""},
		{"H2 nor a long one", `validations: [{expression: 'false', message: b, messageExpression: "[1,2,3,4,5,6].map(x, '` + strings.Repeat("a", 1000) + `').join()"}]`, "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "b"}, ""},
		{"H3 a warning does not deny", "validations: [{expression: 'false', message: a}]", "Warn",
			codec.Response{Allowed: true, Warnings: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': a"}}, ""},
		{"H3 a warning is one line, which a header can carry", "validations: [{expression: \"1 ==\\n\\t2\"}, {expression: 'false', messageExpression: \"'a\\\\u001b[31m  b'\"}, {expression: 'false', message: 'a  b'}]", "Warn",
			codec.Response{Allowed: true, Warnings: []string{
				"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: 1 == 2",
				"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': a [31m b",
				"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': a  b",
			}}, ""},
		{"H3 an entry of the audit", "validations: [{expression: 'true'}, {expression: 'false', message: '<a>'}]", "Audit",
			codec.Response{Allowed: true, Annotations: []codec.Annotation{{Key: hook.FailureKey,
				Value: `{"message":"\u003ca\u003e","policy":"p","binding":"b","expressionIndex":1,"validationActions":["Audit"]}`}}}, ""},
		{"H4 annotations", "auditAnnotations: [{key: a, valueExpression: \"' v '\"}, {key: n, valueExpression: 'null'}, {key: e, valueExpression: \"''\"}]", "Deny",
			codec.Response{Allowed: true, Annotations: []codec.Annotation{{Key: "a", Value: "v"}}}, ""},
		{"H5 Fail", "validations: [{expression: 'object.nothing == 1'}, {expression: 'true'}]", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "expression 'object.nothing == 1' resulted in error: no such key: nothing"}, ""},
		{"H5 Fail and Warn", "validations: [{expression: 'object.nothing == 1'}]", "Warn",
			codec.Response{Allowed: true, Warnings: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': expression 'object.nothing == 1' resulted in error: no such key: nothing"}}, ""},
		{"H5 Ignore", "{failurePolicy: Ignore, validations: [{expression: 'object.nothing == 1'}, {expression: 'true'}]}", "Deny", codec.Response{}, hook.Evaluation},
		{"H5 Ignore beside a denial", "{failurePolicy: Ignore, validations: [{expression: 'object.nothing == 1'}, {expression: 'false', message: a}]}", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "a"}, ""},
		{"H5 Ignore beside a denial that warns", "{failurePolicy: Ignore, validations: [{expression: 'object.nothing == 1'}, {expression: 'false', message: a}]}", "Warn",
			codec.Response{Warnings: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': a"}}, hook.Evaluation},
		{"H5 a condition that fails", "{matchConditions: [{name: a, expression: 'object.nothing == 1'}, {name: b, expression: 'object.other == 1'}], validations: [{expression: 'true'}]}", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "[expression 'object.nothing == 1' resulted in error: no such key: nothing, expression 'object.other == 1' resulted in error: no such key: other]"}, ""},
		{"H5 conditions that fail alike", "{matchConditions: [{name: a, expression: 'object.nothing == 1'}, {name: b, expression: 'object.nothing == 1'}], validations: [{expression: 'true'}]}", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "expression 'object.nothing == 1' resulted in error: no such key: nothing"}, ""},
		{"H5 beside one that is false", "{matchConditions: [{name: a, expression: 'object.nothing == 1'}, {name: b, expression: 'false'}], validations: [{expression: 'false'}]}", "Deny",
			codec.Response{Allowed: true}, ""},
		{"H5 an annotation that fails denies whatever the actions", "auditAnnotations: [{key: a, valueExpression: 'string(object.nothing)'}]", "Audit",
			codec.Response{Code: 422, Reason: "Invalid", Message: "expression 'string(object.nothing)' resulted in error: no such key: nothing"}, ""},
		{"H5 but under Ignore", "{failurePolicy: Ignore, auditAnnotations: [{key: a, valueExpression: 'string(object.nothing)'}]}", "Audit", codec.Response{}, hook.Evaluation},
		{"H5 an expression that is too dear", "validations: [{expression: '" + costly + "'}, {expression: 'false', message: a}]", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "expression '" + costly + "' resulted in error: operation cancelled: actual cost limit exceeded\na"}, ""},
		{"H5 a policy that is too dear", "validations: [{expression: 'false', message: a}" + strings.Repeat(", {expression: '"+costly+"'}", 11) + "]", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "validation failed due to running out of cost budget, no further validation rules will be run"}, ""},
		{"H5 annotations that are too dear are all that is told", "{validations: [{expression: 'false'}], auditAnnotations: [{key: a, valueExpression: \"'a'\"}" + dearAnnotations + "]}", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: "validation failed due to running out of cost budget, no further validation rules will be run"}, ""},
		{"H5 what is left is too little for a message, also of what holds", "validations: [{expression: 'true', messageExpression: \"" + dear + " ? 'a' : 'b'\"}" + strings.Repeat(", {expression: '"+dear+"'}", 18) + "]", "Deny",
			codec.Response{Code: 422, Reason: "Invalid", Message: strings.Repeat("failed messageExpression: validation failed due to running out of cost budget, no further validation rules will be run\n", 18) +
				"failed messageExpression: validation failed due to running out of cost budget, no further validation rules will be run"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			spec := specOf(t, row.spec)
			p, errs := policy.NewCompiler(celenv.NewCompiler()).Compile(spec, field.NewPath("spec"))
			if row.cause == "invalid" {
				if len(errs) == 0 {
					t.Error("it compiles")
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := ask(viewOf(t), policy.NewBinding(p, "p", "b", []admissionregistrationv1.ValidationAction{admissionregistrationv1.ValidationAction(row.actions)}, nil), time.Time{})
			if diff := cmp.Diff(row.want, got.resp); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var call *hook.CallError
			if errors.As(got.err, &call); (call != nil) != (row.cause != "") || call != nil && (call.Cause != row.cause || strings.Contains(call.Error(), "nothing: ")) {
				t.Errorf("error %v", got.err)
			}
		})
	}
}

// H9 A policy that is not evaluated by the deadline has not answered.
func TestDeadline(t *testing.T) {
	b := policy.NewBinding(compile(t, "validations: [{expression: 'true'}]"), "p", "b", []admissionregistrationv1.ValidationAction{"Deny"}, nil)
	v := viewOf(t)
	var call *hook.CallError
	if got := ask(v, b, time.Now().Add(-time.Second)); !errors.As(got.err, &call) || call.Cause != hook.Timeout {
		t.Errorf("%+v", got)
	}
	if got := ask(v, b, time.Now().Add(time.Hour)); !got.resp.Allowed || got.err != nil {
		t.Errorf("the next one is not evaluated: %+v", got)
	}
}

// H8 Bindings share what their policy came to, and differ in what they make of it.
func TestBindingsShare(t *testing.T) {
	p := compile(t, "validations: [{expression: 'false', message: a}]")
	v := viewOf(t)
	deny := ask(v, policy.NewBinding(p, "p", "b", []admissionregistrationv1.ValidationAction{"Deny"}, nil), time.Now().Add(time.Hour))
	// What is known of the review takes no time any more.
	warn := ask(v, policy.NewBinding(p, "p", "c", []admissionregistrationv1.ValidationAction{"Warn"}, nil), time.Now().Add(-time.Hour))
	if deny.resp.Allowed || !warn.resp.Allowed || len(warn.resp.Warnings) != 1 || warn.err != nil {
		t.Errorf("%+v, %+v", deny, warn)
	}
}

// H10 A load compiles what neither it nor the one before has, and forgets what neither
// uses.
func TestCompilerKeepsWhatIsUsed(t *testing.T) {
	c := policy.NewCompiler(celenv.NewCompiler())
	load := func(specs ...string) (list []*policy.Policy) {
		c.Begin()
		for _, text := range specs {
			p, errs := c.Compile(specOf(t, text), nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			list = append(list, p)
		}
		return list
	}
	a, b, changed := "validations: [{expression: 'true'}]", "validations: [{expression: 'false'}]", "validations: [{expression: 'false', message: b}]"
	first := load(a, b, a)
	if first[0] != first[2] || c.Compiled() != 2 {
		t.Errorf("%d compiled for two", c.Compiled())
	}
	if second := load(a, changed); second[0] != first[0] || c.Compiled() != 3 {
		t.Errorf("%d compiled after a change of one", c.Compiled())
	}
	load(a)
	if third := load(a); third[0] != first[0] || c.Compiled() != 3 {
		t.Errorf("%d compiled without a change", c.Compiled())
	}
	if load(changed); c.Compiled() != 4 {
		t.Errorf("%d compiled: what nobody used was kept", c.Compiled())
	}
}

// What a policy came to, and how, expression by expression.
func TestExplain(t *testing.T) {
	p := compile(t, `{matchConditions: [{name: c, expression: "true"}], variables: [{name: name, expression: "object.metadata.name"}, {name: unused, expression: "1"}],
		validations: [{expression: "variables.name == 'api'", messageExpression: "'not ' + variables.name"}, {expression: "object.nothing == 1"}], auditAnnotations: [{key: k, valueExpression: "cluster.name"}]}`)
	x, err := policy.NewBinding(p, "p", "b", []admissionregistrationv1.ValidationAction{"Deny"}, nil).Explain(viewOf(t))
	want := hook.Explanation{
		Answer: "denies: not web\nexpression 'object.nothing == 1' resulted in error: no such key: nothing",
		Steps: []string{
			"matchConditions[0]: true", "validations[0]: false", "validations[1]: expression 'object.nothing == 1' resulted in error: no such key: nothing",
			`validations[0].messageExpression: "not web"`, `auditAnnotations[k]: "east"`, `variables.name: "web"`,
		},
	}
	if diff := cmp.Diff(want, x); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// What the actions Warn and Audit make of a validation that does not hold is said, too.
func TestExplainActions(t *testing.T) {
	p := compile(t, "validations: [{expression: 'false', message: first}, {expression: 'true', message: holds}, {expression: 'false', message: second}]")
	for want, actions := range map[string][]admissionregistrationv1.ValidationAction{
		"allows, warns: first\nsecond":                        {"Warn"},
		"allows, audits: first\nsecond":                       {"Audit"},
		"allows, warns: first\nsecond, audits: first\nsecond": {"Warn", "Audit"},
		"denies: first\nsecond, audits: first\nsecond":        {"Audit", "Deny"},
	} {
		if x, err := policy.NewBinding(p, "p", "b", actions, nil).Explain(viewOf(t)); x.Answer != want || err != nil {
			t.Errorf("with %v it %q, not %q: %v", actions, x.Answer, want, err)
		}
	}
	holds := compile(t, "validations: [{expression: 'true'}]")
	if x, _ := policy.NewBinding(holds, "p", "b", []admissionregistrationv1.ValidationAction{"Warn", "Audit"}, nil).Explain(viewOf(t)); x.Answer != "allows" {
		t.Errorf("if all holds it %q", x.Answer)
	}
}

// H6 A policy in mode Shadow waits for nobody, and nobody waits for it: it is evaluated
// beside the others.
func TestShadowIsEvaluatedByItself(t *testing.T) {
	v := viewOf(t)
	b := policy.NewBinding(compile(t, "validations: [{expression: 'false'}]"), "p", "b", []admissionregistrationv1.ValidationAction{"Deny"}, nil)
	scope := celenv.NewCompiler().NewScope(celenv.Declarations{})
	v.Variables().Once("busy", scope, celenv.Given{}, time.Time{}, func(*celenv.Evaluation) (any, bool) {
		a := &told{}
		b.Ask(t.Context(), hook.Question{View: v, Deadline: time.Now().Add(time.Hour), Shadow: true}, hook.NewReceiver(a, 0))
		if a.resp.Allowed || a.err != nil {
			t.Errorf("%+v", a)
		}
		return nil, false
	})
}
