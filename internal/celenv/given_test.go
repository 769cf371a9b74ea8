// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"strings"
	"testing"
	"time"
)

const storedNamespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","uid":"u","labels":{"team":"a"},"annotations":{"a":"b"},"ownerReferences":[{"name":"o"}]},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`

// What an expression looks at of the namespace is known when it is compiled.
func TestUseOfNamespace(t *testing.T) {
	for text, want := range map[string]NamespaceUse{
		"object.metadata.name == 'a'":                                              NamespaceUnused,
		"request.namespace == 'a'":                                                 NamespaceUnused,
		"namespaceObject.metadata.name == 'a'":                                     NamespaceLabels,
		"namespaceObject.metadata.labels.team == 'a'":                              NamespaceLabels,
		"namespaceObject.metadata.labels['team'] == 'a'":                           NamespaceLabels,
		"has(namespaceObject.metadata.labels.team)":                                NamespaceLabels,
		"has(namespaceObject.metadata.labels)":                                     NamespaceLabels,
		"namespaceObject.metadata.?labels.?team.orValue('') == 'a'":                NamespaceLabels,
		"namespaceObject == null":                                                  NamespaceLabels,
		"null != namespaceObject":                                                  NamespaceLabels,
		"['a'].all(x, namespaceObject.metadata.labels.team == x)":                  NamespaceLabels,
		"has(namespaceObject.metadata)":                                            NamespaceWhole,
		"namespaceObject.metadata.annotations.a == 'a'":                            NamespaceWhole,
		"namespaceObject.status.phase == 'Active'":                                 NamespaceWhole,
		"(object == null ? namespaceObject : null).metadata.annotations.a == 'a'":  NamespaceWhole,
		"namespaceObject == namespaceObject":                                       NamespaceWhole,
		"dyn(namespaceObject).metadata.labels.team == 'a'":                         NamespaceWhole,
		"dyn(namespaceObject.metadata).uid == 'a'":                                 NamespaceWhole,
		"[namespaceObject].all(n, n.metadata.name == 'a')":                         NamespaceWhole,
		"[1].all(x, {'a': namespaceObject.spec.finalizers}.a.size() == x)":         NamespaceWhole,
		"namespaceObject.metadata.labels.a == namespaceObject.metadata.generation": NamespaceUnused, // does not compile
	} {
		x, err := NewCompiler().NewScope(Declarations{}).Compile(text, Bool)
		switch {
		case err != nil && want != NamespaceUnused:
			t.Errorf("%s: %v", text, err)
		case err == nil && x.Namespace() != want:
			t.Errorf("%s: %d and not %d", text, x.Namespace(), want)
		}
	}
	s := scopeOf(t, "a=namespaceObject.metadata.labels", "b=namespaceObject.metadata.annotations", "c=1")
	if s.Namespace() != NamespaceWhole {
		t.Errorf("of variables: %d", s.Namespace())
	}
}

// Expressions see params and the namespace as they are given, and null where there is
// none; conditions see params, and no namespace.
func TestGiven(t *testing.T) {
	params := NewParams([]byte(`{"kind":"Limits","spec":{"max":3,"names":["a","b"]}}`))
	namespace, err := NewNamespace([]byte(storedNamespace))
	if err != nil {
		t.Fatal(err)
	}
	compiler := NewCompiler()
	for _, row := range []struct {
		text  string
		given Given
		want  bool
	}{
		{"params.spec.max == 3 && 'b' in params.spec.names", Given{Params: params}, true},
		{"params == null", Given{}, true},
		{"params == null", Given{Params: params}, false},
		{"namespaceObject == null", Given{}, true},
		{"namespaceObject.metadata.labels.team == 'a' && namespaceObject.status.phase == 'Active' && namespaceObject.metadata.annotations.a == 'b'", Given{Namespace: namespace}, true},
		{"has(dyn(namespaceObject.metadata).ownerReferences) || has(dyn(namespaceObject).kind)", Given{Namespace: namespace}, false},
	} {
		s := compiler.NewScope(Declarations{Params: true})
		x, err := s.Compile(row.text, Bool)
		if err != nil {
			t.Fatal(err)
		}
		v := variablesOf(decode(t, update))
		v.Once(t, s, row.given, time.Time{}, func(e *Evaluation) (any, bool) {
			e.Pass(PolicyBudget)
			if value, err := e.Evaluate(x); err != nil || value.True() != row.want {
				t.Errorf("%s: %v, %v", row.text, value, err)
			}
			return nil, false
		})
	}
	condition, err := compiler.CompileWithParams("params.spec.max == 3 && namespaceObject == null")
	if err != nil {
		t.Fatal(err)
	}
	v := variablesOf(decode(t, update))
	for _, given := range []Given{{Params: params, Namespace: namespace}, {}, {Params: params}} {
		v.Once(&given, compiler.NewScope(Declarations{}), given, time.Time{}, func(e *Evaluation) (any, bool) {
			holds, left, err := e.Condition(condition, Budget)
			if holds != (given.Params != nil) || (err == nil) != holds || left <= 0 || left >= Budget {
				t.Errorf("%v: %t, %d, %v", given, holds, left, err)
			}
			if _, left, err = e.Condition(condition, 1); left != -1 || err == nil {
				t.Errorf("beyond the budget: %d, %v", left, err)
			}
			return nil, false
		})
	}
	if _, err := compiler.Compile("params.spec.max == 3"); err == nil {
		t.Error("a condition without params sees them")
	}
	if _, err := compiler.NewScope(Declarations{}).Compile("params == null", Bool); err == nil {
		t.Error("a policy without params sees them")
	}
}

// What is no object is an error.
func TestObjectsThatAreNone(t *testing.T) {
	for _, raw := range []string{"[]", "null", "1", "{"} {
		s := NewCompiler().NewScope(Declarations{Params: true})
		x, err := s.Compile("params == null", Bool)
		if err != nil {
			t.Fatal(err)
		}
		variablesOf(decode(t, update)).Once(t, s, Given{Params: NewParams([]byte(raw))}, time.Time{}, func(e *Evaluation) (any, bool) {
			e.Pass(PolicyBudget)
			if _, err := e.Evaluate(x); err == nil || !strings.Contains(err.Error(), "failed to prepare params for evaluation") {
				t.Errorf("%s: %v", raw, err)
			}
			return nil, false
		})
		if o, err := NewNamespace([]byte(raw)); err == nil {
			t.Errorf("%s: %v", raw, o)
		}
	}
}

// A name with a dot in front is the same variable, whatever is known of what an expression
// looks at.
func TestNamesWithADot(t *testing.T) {
	params := NewParams([]byte(`{"max":3}`))
	c := NewCompiler()
	condition, err := c.CompileWithParams(".params.max == 3 && .oldObject.spec.replicas == 2 && .object.spec.replicas == 3")
	if err != nil {
		t.Fatal(err)
	}
	if !condition.ReadsObjects() {
		t.Error("it is not known to look at objects")
	}
	variablesOf(decode(t, update)).Once(t, c.NewScope(Declarations{Params: true}), Given{Params: params}, time.Time{}, func(e *Evaluation) (any, bool) {
		if holds, _, err := e.Condition(condition, Budget); !holds || err != nil {
			t.Errorf("it is %v, %v", holds, err)
		}
		return nil, false
	})
	x, err := c.NewScope(Declarations{}).Compile(".object.spec.replicas == 3 && .namespaceObject.status.phase == 'Active'", Bool)
	if err != nil || !x.ReadsObjects() || x.Namespace() != NamespaceWhole {
		t.Errorf("%+v, %v", x, err)
	}
}
