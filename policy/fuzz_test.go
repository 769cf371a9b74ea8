// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
	"github.com/admission-dispatcher/dispatcher/policy"
)

// small is a review whose object is quick to write.
var small = strings.NewReplacer(strings.Repeat("a", 60_000), "aaa", strings.Repeat("z", 900), "z").Replace(review)

// FuzzMutation evaluates expressions of JSON patches and of apply configurations. What they
// come to is the same again, but for the order of maps, is a patch within its limits that json-patch.v4 applies, or is a
// failure by the failure policy: a denial, or a CallError that quotes nothing of the object.
func FuzzMutation(f *testing.F) {
	for _, seed := range []string{
		"[" + op("add", "/spec/a", "object.spec.big + 'b'") + ", " + op("remove", "/spec/a", "null") + "]",
		"[" + op("test", "/spec/a", "1") + "]", "object.spec.big.split('').map(x, " + op("add", "/spec/b", "x") + ")",
		`[JSONPatch{op: "move", from: "/spec/big", path: "/metadata/x"}, JSONPatch{op: "copy", from: "/spec", path: "/a~1b"}]`,
		"[" + op("add", "/metadata/labels", "Object.metadata.labels{a: 'b'}") + "]", "[" + op("replace", "/spec", "{1: 2}") + "]",
		"[" + op("add", "/spec/n", "[9223372036854775807, 18446744073709551615u, 1.5, -0.0, b'x', true, null, duration('1s'), timestamp(0), {'a': [object]}]") + "]",
		"[" + op("add", "/' + jsonpatch.escapeKey('a/b') + '", "variables") + "]", "[" + op("add", "/-", "1.0/0.0") + "]", "object.nothing", "[1]", "[]",
	} {
		f.Add(false, seed)
	}
	for _, seed := range []string{
		`Object{metadata: Object.metadata{labels: {"a~b/c": "d"}}}`, `Object{spec: Object.spec{priority: "high"}}`, `Object{spec: Object.metadata{}}`,
		`Object{spec: Object.spec{containers: [Object.spec.containers{name: "a", image: object.spec.big}]}}`, `Object{spec: Object.spec{nodeSelector: {"a": "b"}}}`,
		`has(object.spec) ? Object{} : Object{kind: "X", apiVersion: "y", later: {"a": [1, 2.5, null]}}`, `object.nothing`,
	} {
		f.Add(true, seed)
	}
	compiler := celenv.NewCompiler()
	fuzz.Run(f, func(t testing.TB, configuration bool, expression string) {
		first := evaluated(t, compiler, configuration, expression, "Fail")
		if first == nil {
			return // it does not compile
		}
		// CEL goes over a map in Go's order, which is another one each time.
		retried := func(failurePolicy admissionregistrationv1.FailurePolicyType, as func(*told) bool) *told {
			again := evaluated(t, compiler, configuration, expression, failurePolicy)
			for range 200 {
				if as(again) {
					break
				}
				again = evaluated(t, compiler, configuration, expression, failurePolicy)
			}
			return again
		}
		again := retried("Fail", func(x *told) bool {
			return bytes.Equal(first.resp.Patch, x.resp.Patch) && first.resp.Message == x.resp.Message
		})
		if !bytes.Equal(first.resp.Patch, again.resp.Patch) || first.resp.Message != again.resp.Message {
			t.Errorf("one expression comes to %s %q and to %s %q", first.resp.Patch, first.resp.Message, again.resp.Patch, again.resp.Message)
		}
		ignored := retried("Ignore", func(x *told) bool {
			return bytes.Equal(first.resp.Patch, x.resp.Patch) && first.resp.Allowed == (x.err == nil)
		})
		if first.err != nil || !ignored.resp.Allowed {
			t.Errorf("under Fail %+v, under Ignore %+v", first, ignored)
		}
		switch {
		case first.resp.Allowed:
			if !bytes.Equal(first.resp.Patch, ignored.resp.Patch) || ignored.err != nil {
				t.Errorf("under Ignore it comes to %s, %v, and not to %s", ignored.resp.Patch, ignored.err, first.resp.Patch)
			}
			applies(t, first.resp.Patch)
		case first.resp.Message == "" || first.resp.Code != 403:
			t.Errorf("denied with %+v", first.resp)
		default:
			var call *hook.CallError
			if !errors.As(ignored.err, &call) || call.Cause != hook.Evaluation || ignored.resp.Patch != nil {
				t.Errorf("under Ignore it comes to %+v, and not to a CallError", ignored)
			}
		}
	})
}

// evaluated is what an expression comes to; nil: it does not compile.
func evaluated(t testing.TB, cel *celenv.Compiler, configuration bool, expression string, failurePolicy admissionregistrationv1.FailurePolicyType) *told {
	t.Helper()
	mutation := admissionregistrationv1.Mutation{JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression}}
	if configuration {
		mutation = admissionregistrationv1.Mutation{ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: expression}}
	}
	spec := &admissionregistrationv1.MutatingAdmissionPolicySpec{FailurePolicy: &failurePolicy, Mutations: []admissionregistrationv1.Mutation{mutation}}
	m, errs := policy.NewCompiler(cel).CompileMutations(spec, field.NewPath("spec"))
	for _, err := range errs {
		if !strings.HasPrefix(err.Field, "spec.mutations[0].") || !strings.HasSuffix(err.Field, ".expression") || strings.Contains(err.Detail, "\n") {
			t.Errorf("%q: %v", expression, err)
		}
	}
	if len(errs) > 0 || strings.TrimSpace(expression) == "" {
		return nil
	}
	v := viewOfText(t, nil, small)
	return mutate(v, policy.NewMutationBinding(m, "p", "b", nil, nil), time.Time{})
}

// applies fails the test unless the patch applies to the object of the review.
func applies(t testing.TB, patch []byte) {
	t.Helper()
	if patch == nil {
		return
	}
	v := viewOfText(t, nil, small)
	operations, err := jsonpatchv4.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s is no patch: %v", patch, err)
	}
	if _, err := operations.Apply(v.Object.Raw); err != nil || len(operations) > 2000 || len(patch) > 1<<20 {
		t.Errorf("%s, of %d operations, does not apply: %v", patch, len(operations), err)
	}
}
