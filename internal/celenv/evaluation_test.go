// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// scopeOf compiles variables, in order.
func scopeOf(t testing.TB, variables ...string) *Scope {
	t.Helper()
	s := NewCompiler().NewScope(Declarations{Variables: len(variables) > 0})
	for _, v := range variables {
		name, text, _ := strings.Cut(v, "=")
		if err := s.Declare(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func expression(t testing.TB, s *Scope, text string) *Expression {
	t.Helper()
	x, err := s.Compile(text, AnythingElse)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// evaluation calls f with an Evaluation over the review.
func evaluation(t testing.TB, s *Scope, review string, deadline time.Time, f func(*Evaluation)) {
	t.Helper()
	variablesOf(decode(t, review)).Once(t, s, Given{}, deadline, func(e *Evaluation) (any, bool) {
		e.Pass(PolicyBudget)
		f(e)
		return nil, false
	})
}

// H9 An object of a built-in kind is made plain data once, and not by each expression or turn
// of a loop that asks for it: one of megabytes takes a good part of a second.
func TestPlainObjectsAreMadeOnce(t *testing.T) {
	evaluation(t, scopeOf(t), update, time.Time{}, func(e *Evaluation) {
		e.Plain()
		for _, name := range []string{"object", "oldObject"} {
			first, _ := e.ResolveName(name)
			again, _ := e.ResolveName(name)
			if _, typed := first.(*typedMap); typed || first != again {
				t.Errorf("%s is %T, and made again: %v", name, first, first != again)
			}
		}
	})
}

// Expressions see what kube-apiserver shows to policies: the resource as it was
// converted, where conditions see it as it was sent.
func TestPolicyVariables(t *testing.T) {
	s := scopeOf(t, "replicas=object.spec.replicas", "both=[variables.replicas, oldObject.spec.replicas]", "cluster_name=cluster.name", "missing=object.nothing")
	evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
		for text, want := range map[string]string{
			"variables.both": "[3,2]", "variables.cluster_name + cluster.labels.env": `"eastprod"`,
			"request.resource.version + request.requestResource.version": `"v1v1beta1"`,
			"has(variables.replicas)":                                    "true", "request.name": `"web"`, "null": "null",
			"variables.replicas == 3": "true",
		} {
			v, err := e.Evaluate(expression(t, s, text))
			if err != nil || v.JSON() != want {
				t.Errorf("%s is %s, %v", text, v.JSON(), err)
			}
		}
		_, err := e.Evaluate(expression(t, s, "variables.missing == 1"))
		var own *ExpressionError
		if !errors.As(err, &own) || own.Error() != `expression 'variables.missing == 1' resulted in error: composited variable "missing" fails to evaluate: no such key: nothing` {
			t.Errorf("%v", err)
		}
		if said := own.Discreet().Error(); strings.Contains(said, "nothing") {
			t.Errorf("a log has %q", said)
		}
	})
}

// H8 A variable is evaluated once, and costs in each pass what it costs, with those that
// it uses, whatever pass they were evaluated in.
func TestVariablesAreChargedInEachPass(t *testing.T) {
	s := scopeOf(t, "inner=object.spec.list.map(x, x * 2)", "outer=variables.inner.map(x, x + 1)", "unused=1/0")
	first, second := expression(t, s, "variables.inner.size() == 2"), expression(t, s, "variables.outer.size() == 2")
	spent := func(e *Evaluation, list ...*Expression) int64 {
		e.Pass(PolicyBudget)
		for _, x := range list {
			if _, err := e.Evaluate(x); err != nil {
				t.Fatal(err)
			}
		}
		return PolicyBudget - e.Left()
	}
	var alone, together int64
	evaluation(t, s, update, time.Time{}, func(e *Evaluation) { alone = spent(e, second) })
	evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
		together = spent(e, first, second)
		if got := spent(e, second); got != alone {
			t.Errorf("in a later pass it costs %d, alone %d", got, alone)
		}
		if got := spent(e, first, second); got != together {
			t.Errorf("both cost %d again, before %d", got, together)
		}
		if got := spent(e, second, second); got >= 2*alone {
			t.Errorf("the variables of a pass are charged twice: %d, once %d", got, alone)
		}
		if known := e.Known(); len(known) != 2 || known[0].Name != "inner" || known[1].JSON() != "[3,5]" {
			t.Errorf("known are %v", known)
		}
	})
}

// H5 What exceeds the budget ends the pass, by its own cost or by that of a variable.
func TestPolicyBudget(t *testing.T) {
	s := scopeOf(t, "list=object.spec.list.map(x, x * 2)")
	for _, text := range []string{"object.spec.list.map(x, x * 2).size() == 2", "variables.list == []"} {
		x := expression(t, s, text)
		evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
			if _, err := e.Evaluate(x); err != nil {
				t.Fatal(err)
			}
			cost := PolicyBudget - e.Left()
			e.Pass(cost)
			if _, err := e.Evaluate(x); err != nil || e.Left() != 0 {
				t.Errorf("%s with what it costs: %v, left %d", text, err, e.Left())
			}
			e.Pass(cost - 1)
			if _, err := e.Evaluate(x); !errors.Is(err, ErrOutOfBudget) {
				t.Errorf("%s with less: %v", text, err)
			}
		})
	}
	t.Run("of an expression", func(t *testing.T) {
		x := expression(t, s, "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, a + b + c + d + e > 0)))))")
		evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
			var own *ExpressionError
			if _, err := e.Evaluate(x); !errors.As(err, &own) || !strings.Contains(err.Error(), "actual cost limit exceeded") {
				t.Errorf("%v", err)
			}
		})
	})
}

// H9 The deadline ends an expression, and one in a variable.
func TestPolicyDeadline(t *testing.T) {
	s := scopeOf(t, "list=[1,2,3,4,5].map(x, x * 2)")
	for _, text := range []string{"true", "variables.list == []"} {
		evaluation(t, s, update, time.Now().Add(-time.Second), func(e *Evaluation) {
			if _, err := e.Evaluate(expression(t, s, text)); !errors.Is(err, ErrInterrupted) {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
}

// What is kept of a review is of its object: a mutation drops it.
func TestOnce(t *testing.T) {
	s := scopeOf(t)
	v := variablesOf(decode(t, update))
	made := 0
	get := func(keep bool) {
		v.Once("key", s, Given{}, time.Time{}, func(*Evaluation) (any, bool) { made++; return made, keep })
	}
	for _, keep := range []bool{false, true, true, true} {
		get(keep)
	}
	if made != 2 {
		t.Errorf("made %d times", made)
	}
	v.SetObject(objectOf(t, `{"metadata":{"name":"web"}}`))
	if get(true); made != 3 {
		t.Error("it was kept for another object")
	}
}

// What an error quotes of the object is cut: each expression that fails would have a copy of
// it in the answer, and each variable that asks for another one.
func TestErrorsAreCut(t *testing.T) {
	s := scopeOf(t, "a={'x': 1}[object.spec.long]", "b=variables.a + 1", "c=variables.b + 1")
	review := strings.Replace(update, `"replicas":3`, `"replicas":3,"long":"`+strings.Repeat("é", 1<<20)+`"`, 1)
	evaluation(t, s, review, time.Time{}, func(e *Evaluation) {
		for _, text := range []string{"{'x': 1}[object.spec.long] == 1", "variables.c == 1"} {
			_, err := e.Evaluate(expression(t, s, text))
			if err == nil {
				t.Fatal("it has a result")
			}
			if said := err.Error(); !strings.Contains(said, "no such key: éé") || !strings.HasSuffix(said, "é ...") || !utf8.ValidString(said) || len(said) > 6<<10 {
				t.Errorf("%d B: %.200s", len(said), said)
			}
		}
		for i := range e.known {
			if text := fmt.Sprint(e.known[i].value); len(text) > 6<<10 {
				t.Errorf("%d B of %s", len(text), s.variables[i].name)
			}
		}
	})
}
