// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/policy"
)

// judge is a cluster whose authorizer allows some verbs.
type judge struct {
	caller

	allows []string
	asked  []string // verbs
}

func (j *judge) Authorize(access *authorizationv1.SubjectAccessReviewSpec, _ time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	verb := access.ResourceAttributes.Verb
	j.asked = append(j.asked, verb)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: slices.Contains(j.allows, verb)}, nil
}

// judged is the View of the review from a cluster with an authorizer.
func judged(t testing.TB, j *judge) *hook.View {
	t.Helper()
	v := viewOfText(t, &j.caller, review)
	v.Caller = j
	return v
}

// may is an expression that asks the authorizer.
func may(verb string) string {
	return fmt.Sprintf("authorizer.group('').resource('pods').check('%s').allowed()", verb)
}

// J1 A policy waits for what its expressions ask the authorizer, asks each thing once for
// one review, and holds no turn meanwhile.
func TestJ1PoliciesAskTheAuthorizer(t *testing.T) {
	validating := fmt.Sprintf(`{matchConditions: [{name: c, expression: "%s"}], variables: [{name: v, expression: "%s"}], validations: [{expression: "variables.v"}, {expression: "%s", message: no list}]}`,
		may("get"), may("watch"), may("list"))
	changing := fmt.Sprintf("matchConditions: [{name: c, expression: \"%s\"}]\nvariables: [{name: v, expression: \"%s\"}]\n", may("get"), may("watch")) +
		patches("["+op("add", "/spec/a", "variables.v")+"]", "["+op("add", "/spec/b", may("list"))+"]")
	for _, row := range []struct {
		allows                 []string
		says, patch, wasAskedV string
	}{
		{[]string{"get", "watch", "list"}, "", `[{"op":"add","path":"/spec/a","value":true},{"op":"add","path":"/spec/b","value":true}]`, "get watch list"},
		{[]string{"get", "watch"}, "no list", `[{"op":"add","path":"/spec/a","value":true},{"op":"add","path":"/spec/b","value":false}]`, "get watch list"},
		{[]string{"watch", "list"}, "", "", "get"},
	} {
		for name, ask := range map[string]func(v *hook.View) *told{
			"validating": func(v *hook.View) *told { return ask(v, bindingOf(t, validating, "", nil, "Deny"), time.Time{}) },
			"mutating":   func(v *hook.View) *told { return mutate(v, mutating(t, changing), time.Time{}) },
		} {
			j, account := &judge{allows: row.allows}, &turns{}
			v := judged(t, j)
			v.Account = account
			got := ask(v)
			if name == "validating" && (got.resp.Message != row.says || got.resp.Allowed != (row.says == "")) ||
				name == "mutating" && (string(got.resp.Patch) != row.patch || !got.resp.Allowed) || got.err != nil {
				t.Errorf("%s, allowed to %s: %+v", name, row.allows, got)
			}
			if asked := strings.Join(j.asked, " "); asked != row.wasAskedV || account.lookups != len(j.asked) || account.open != 0 {
				t.Errorf("%s, allowed to %s: asked to %s, with %d lookups; %d turns are held", name, row.allows, asked, account.lookups, account.open)
			}
			account.err = errors.New("too many wait")
			fresh := judged(t, &judge{})
			fresh.Account = account
			if call, ok := errors.AsType[*hook.CallError](ask(fresh).err); !ok || call.Cause != hook.Shed {
				t.Errorf("%s: too many wait: %v", name, call)
			}
		}
	}
	// Nobody is asked for an explanation.
	const depends = `it depends on the cluster's authorizer, which was not asked: whether "ada" may get pods`
	j := &judge{}
	if x, err := bindingOf(t, validating, "", nil, "Deny").Explain(judged(t, j)); x.Answer != depends || err != nil {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err := mutating(t, changing).Explain(judged(t, j)); x.Answer != depends || err != nil || j.asked != nil {
		t.Errorf("%+v, %v, asked to %s", x, err, j.asked)
	}
}

// J1 Messages and audit annotations have no authorizer, as in kube-apiserver: what needs one
// there has no result.
func TestJ1NoAuthorizerInMessages(t *testing.T) {
	j := &judge{allows: []string{"get"}}
	text := fmt.Sprintf(`{variables: [{name: v, expression: "%s"}], validations: [{expression: 'false', messageExpression: "variables.v ? 'a' : 'b'", message: plain}], auditAnnotations: [{key: k, valueExpression: "string(variables.v)"}]}`, may("get"))
	got := ask(judged(t, j), bindingOf(t, text, "", nil, "Deny"), time.Time{})
	const want = "plain\nexpression 'string(variables.v)' resulted in error: composited variable \"v\" fails to evaluate: no such attribute(s): authorizer"
	if got.resp.Message != want || j.asked != nil {
		t.Errorf("%q, asked to %s", got.resp.Message, j.asked)
	}
}

// J2 Who needs an authorizer is known with the first expression that may ask it.
func TestJ2TheFirstThatAsks(t *testing.T) {
	asks, other := may("get"), may("list")
	for path, text := range map[string]string{
		"spec.matchConditions[1].expression":     "matchConditions: [{name: a, expression: 'true'}, {name: b, expression: \"" + asks + "\"}]\nvalidations: [{expression: \"" + other + "\"}]",
		"spec.variables[1].expression":           "variables: [{name: a, expression: 'true'}, {name: b, expression: \"" + asks + "\"}]\nvalidations: [{expression: \"" + other + "\"}]",
		"spec.validations[1].expression":         "validations: [{expression: 'true'}, {expression: \"" + asks + "\"}, {expression: \"" + other + "\"}]",
		"spec.mutations[1].jsonPatch.expression": patches("[JSONPatch{}]", "["+op("add", "/a", asks)+"]", "["+op("add", "/a", other)+"]"),
		"spec.mutations[0].jsonPatch.expression": patches("["+op("add", "/a", asks)+"]", "["+op("add", "/a", other)+"]"),
		"":                                       "validations: [{expression: 'true'}]",
		"spec.matchConditions[0].expression":     "matchConditions: [{name: b, expression: \"" + asks + "\"}]\n" + patches("[JSONPatch{}]"),
		"spec.variables[0].expression":           "variables: [{name: b, expression: \"" + asks + "\"}]\n" + patches("[JSONPatch{}]"),
	} {
		var at *field.Path
		var expression string
		if strings.Contains(text, "mutations:") {
			var spec admissionregistrationv1.MutatingAdmissionPolicySpec
			if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
				t.Fatal(err)
			}
			m, errs := policy.NewCompiler(celenv.NewCompiler()).CompileMutations(&spec, field.NewPath("spec"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			at, expression = m.Authorizes()
		} else {
			at, expression = compile(t, text).Authorizes()
		}
		if (at == nil) != (path == "") || at != nil && (at.String() != path || !strings.Contains(expression, asks)) {
			t.Errorf("%s: %v, %s", path, at, expression)
		}
	}
}
