// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// mutationOf evaluates an expression of a mutation with variables of a policy.
func mutationOf(t testing.TB, v *Variables, text string, result Result, deadline time.Time, variables ...string) (*Evaluation, Value, error) {
	t.Helper()
	s := NewCompiler().NewScope(Declarations{Variables: len(variables) > 0})
	for _, declared := range variables {
		name, expression, _ := strings.Cut(declared, ": ")
		if err := s.Declare(name, expression); err != nil {
			t.Fatal(err)
		}
	}
	x, err := s.Compile(text, result)
	if err != nil {
		t.Fatal(err)
	}
	e := newEvaluation(v, s, Given{}, deadline)
	e.Pass(PolicyBudget)
	value, err := e.Evaluate(x)
	return e, value, err
}

// H22 Operations are written as CEL converts their values for JSON, where kube-apiserver
// converts them.
func TestOperations(t *testing.T) {
	v := variablesOf(decode(t, update))
	for _, value := range []string{
		"1", "-1", "9007199254740991", "9007199254740992", "-9007199254740993", "1u", "9007199254740993u", "1.5", "1e300", "true", "null", "'<a> & \u2028 \"q\"'", "b'bytes'", "duration('90s')",
		"timestamp('2026-01-02T03:04:05.5Z')", "[]", "[dyn(1), dyn('a'), dyn([null])]", "{}", "{'b': dyn(1), 'a': dyn({'c': [2]})}", "[1] + [2]", "[1, 2].map(x, x * 2)", "optional.of('a')",
		"Object.spec{a: 1, b: 'x'}", "[dyn(Object.spec{a: 1}), dyn(Object.other{})]", "Object.spec{a: Object.spec.a{b: [1]}}",
	} {
		e, got, err := mutationOf(t, v, `[JSONPatch{op: "add", path: "/a~1b", value: `+value+`}]`, Operations, time.Time{})
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		text, err := e.Operations(got, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		var operations []struct {
			Op, Path string
			Value    any
		}
		if err := json.Unmarshal(text, &operations); err != nil || len(operations) != 1 || operations[0].Op != "add" || operations[0].Path != "/a~1b" {
			t.Fatalf("%s: %s, %v", value, text, err)
		}
		native, err := jsonPatchOf(t, got).Val.ConvertToNative(reflect.TypeFor[*structpb.Value]())
		if err != nil {
			if strings.Contains(value, "Object") { // ours does not convert itself
				continue
			}
			t.Fatal(err)
		}
		want, err := native.(*structpb.Value).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var wanted any
		if err := json.Unmarshal(want, &wanted); err != nil || !reflect.DeepEqual(operations[0].Value, wanted) {
			t.Errorf("%s: %s, want %s", value, text, want)
		}
	}
}

// H22 What there is of a mutation that has no result.
func TestOperationsFail(t *testing.T) {
	v := variablesOf(decode(t, update))
	bomb := []string{"v0: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"}
	for range 9 {
		last := string('0' + byte(len(bomb)-1))
		bomb = append(bomb, "v"+string('0'+byte(len(bomb)))+": ["+strings.Repeat("variables.v"+last+", ", 9)+"variables.v"+last+"]")
	}
	for _, row := range []struct{ value, want string }{
		{"{1: 2}", "JSONPath valueExpression evaluated to a type that could not marshal to JSON: unsupported type conversion from 'int' to string"},
		{"type(1)", "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "},
		{"variables", "could not marshal to JSON: disallowed conversion"},
		{"Object.spec{a: Object.wrong{b: 1}}", `type mismatch: unexpected type name "Object.wrong", expected "Object.spec.a", which matches field name path from root Object type`},
		{"Object.spec{a: [dyn(Object.wrong{}), dyn({'k': Object.also{}})]}", "path from root Object type\nunexpected type name \"Object.wrong\", expected \"Object.spec.a\", which matches"},
		{"variables.v9", errTooLarge.Error()},
		{"'a'.matches('a') ? object.metadata.labels.app + '" + strings.Repeat("x", 2000) + "' : ''", errTooLarge.Error()},
	} {
		e, got, err := mutationOf(t, v, `[JSONPatch{op: "add", path: "/a", value: `+row.value+`}]`, Operations, time.Time{}, bomb...)
		if err != nil {
			t.Fatalf("%s: %v", row.value, err)
		}
		if text, err := e.Operations(got, 2000); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s; %.200s", row.value, err, row.want, text)
		}
	}
	// The clock is looked at, however much may be written.
	e, got, err := mutationOf(t, v, `[JSONPatch{op: "add", path: "/a", value: variables.v9}]`, Operations, time.Now().Add(time.Hour), bomb...)
	if err != nil {
		t.Fatal(err)
	}
	e.deadline = time.Now()
	if _, err := e.Operations(got, 1<<40); !errors.Is(err, ErrInterrupted) {
		t.Errorf("it is written after the deadline: %v", err)
	}
}

// H22 What only mutations may say does not compile elsewhere, and they must be of the one
// type.
func TestTypesOfMutations(t *testing.T) {
	c := NewCompiler()
	for _, row := range []struct {
		text   string
		result Result
		want   string
	}{
		{"Object{} == Object{}", Bool, "undeclared reference to 'Object'"},
		{"jsonpatch.escapeKey('a/b') == 'a'", Bool, "undeclared reference"},
		{"JSONPatch{}", AnythingElse, "undeclared reference to 'JSONPatch'"},
		{"[]", Operations, "must evaluate to list(JSONPatch) but got list(dyn)"},
		{"JSONPatch{}", Operations, "must evaluate to list(JSONPatch) but got JSONPatch"},
		{"Object.spec{}", Configuration, "must evaluate to Object but got Object.spec"},
		{"[JSONPatch{op: jsonpatch.escapeKey('a')}]", Operations, ""},
		{"Object{spec: Object.spec{a: object.a}}", Configuration, ""},
	} {
		for _, variables := range []bool{false, true} {
			_, err := c.NewScope(Declarations{Variables: variables}).Compile(row.text, row.result)
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%s: %v, want %q", row.text, err, row.want)
			}
		}
	}
}

// Objects of mutations compare as in kube-apiserver, and show their fields.
func TestObjectsOfMutations(t *testing.T) {
	v := variablesOf(decode(t, update))
	for text, want := range map[string]string{
		"Object{a: 1} == Object{a: 1}":               "true",
		"Object{a: 1} == Object{a: 2}":               "false",
		"dyn(Object.a{b: 1}) == dyn(Object.c{b: 1})": "false",
		"dyn(Object{a: 1}) == dyn(1)":                "false",
		"Object{a: 1}.a == 1":                        "true",
		"has(Object{a: 1}.b)":                        "false",
		"Object{a: Object.a{b: [7]}}.a.b[0] == 7":    "true",
		"has(Object{a: Object.a{b: [7]}}.a.b)":       "true",
		"has(Object{a: Object.a{b: [7]}}.a.c)":       "false",
	} {
		e, got, err := mutationOf(t, v, `[JSONPatch{op: "add", path: "/", value: `+text+`}]`, Operations, time.Time{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if ops, err := e.Operations(got, 1000); err != nil || !strings.Contains(string(ops), `"value":`+want) {
			t.Errorf("%s: %s, %v", text, ops, err)
		}
	}
}

func jsonPatchOf(t testing.TB, v Value) *mutation.JSONPatchVal {
	t.Helper()
	op, ok := v.value.(traits.Indexer).Get(types.Int(0)).(*mutation.JSONPatchVal)
	if !ok {
		t.Fatalf("%v", v.value)
	}
	return op
}
