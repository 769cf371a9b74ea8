// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// usualRules are expressions as policies have them, over the Deployment of update.
var usualRules = map[string]string{
	"object.spec.replicas <= 5": "true",
	"variables.list.all(x, x > 0) && !variables.list.exists(x, x > 100)":                        "true",
	"object.spec.?template.?spec.?hostNetwork.orValue(false)":                                   "false",
	"'app' in object.metadata.labels && object.metadata.labels['app'].matches('^[a-z]+$')":      "true",
	"has(object.spec.replicas) ? object.spec.replicas > 1 : true":                               "true",
	"object.metadata.name.startsWith('we') || request.userInfo.username in ['system', 'admin']": "true",
	"variables.list.map(x, x + 1).size() + size(object.metadata.labels)":                        "3",
	"variables.list.filter(x, x == 2 || x == 4)":                                                "[2,4]",
	"variables.list.exists_one(x, x == 2)":                                                      "true",
	"object.spec.?replicas.hasValue() && object.metadata.name != oldObject.metadata.labels.app": "true",
	"object.metadata.?labels.none.orValue('none')":                                              `"none"`,
	"'name: ' + object.metadata.name":                                                           `"name: web"`,
	"request.operation == 'UPDATE' && cluster.labels.env == 'prod' && params == null":           "true",
	"[object.spec.replicas, object.spec][0] == 3 && object.spec.list == [1, 2]":                 "true",
}

// unusualRules look like them, and have something that plans leave to CEL.
var unusualRules = []string{
	"object.spec.list.all(i, v, i < 2)",                                     // of its index and its value
	"has(object.metadata.?labels.none)", "has(object.metadata.?labels.app)", // which charges for what is there
	"(true ? object : oldObject).metadata.name == 'web'",
	"[?object.metadata.?name] == ['web']",
	"object.metadata.?labels == oldObject.metadata.?labels",
	"object.spec.list in [[1, 2]] || object.spec.replicas in [3.0] || object.spec.whole in [1]",
	"object.spec.replicas < object.spec.ratio || object.spec.list < 3",
	"object.spec.list.exists(object, object == 2) && .object.spec.replicas == 3",
	"!(object.spec.list.all(x, x / 0 > 1) || true)",
	"'a'.matches(object.metadata.name)", "object.spec.list[5] == 1 || object.spec.list['a'] == 1",
}

// Expressions of the usual forms have a plan, which knows.
func TestUsualRulesHavePlans(t *testing.T) {
	s := NewCompiler().NewScope(Declarations{Variables: true, Params: true})
	if err := s.Declare("list", "object.spec.list.map(x, x * 2)"); err != nil { // by CEL
		t.Fatal(err)
	}
	for text, want := range usualRules {
		x := expression(t, s, text)
		evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
			value, _, knew := e.follow(x.planned)
			if !knew || (Value{value}).JSON() != want {
				t.Errorf("%s: planned %v, known %v, is %v", text, x.planned.plan != nil, knew, value)
			}
		})
		plansAgree(t, variablesOf(decode(t, update)), s, x, Given{})
	}
	for _, text := range unusualRules {
		if x, err := s.Compile(text, AnythingElse); err == nil {
			plansAgree(t, variablesOf(decode(t, update)), s, x, Given{})
		} else {
			t.Logf("%s: %v", text, err)
		}
	}
}

// H9 The deadline ends a loop of a plan, and what CEL would do in its place.
func TestPlansEndAtTheDeadline(t *testing.T) {
	s := scopeOf(t)
	x := expression(t, s, "[1, 2, 3].all(x, x > 0)")
	evaluation(t, s, update, time.Now().Add(-time.Second), func(e *Evaluation) {
		for e.turns = 0; e.turns < checkFrequency; {
			if _, _, knew := e.follow(x.planned); !knew {
				break
			}
		}
		if !e.interrupted || e.turns != checkFrequency {
			t.Errorf("interrupted after %d turns: %v", e.turns, e.interrupted)
		}
		if _, err := e.Evaluate(x); !errors.Is(err, ErrInterrupted) {
			t.Error(err)
		}
	})
}

// H9 What is compared with a part of an object that the deadline kept from being converted is
// not found different: nothing comes of it, nor of a variable that follows.
func TestPlansEndWithTheirConversions(t *testing.T) {
	object := `{"spec":{"list":["` + strings.Repeat("a", 2*smallest) + `"]}}`
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE",` +
		`"kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},` +
		`"object":` + object + `,"oldObject":` + object + `}}`
	s := scopeOf(t, "yes=true")
	begun := expression(t, s, "has(object.spec) && has(oldObject.spec)") // which wait
	for _, text := range []string{
		"object != oldObject", "[object] == [oldObject]", "object in [oldObject]", "object.spec != oldObject.spec", "object != oldObject && variables.yes",
	} {
		x := expression(t, s, text)
		evaluation(t, s, review, time.Time{}, func(e *Evaluation) {
			if _, err := e.Evaluate(begun); err != nil {
				t.Error(err)
			}
			e.deadline = time.Now().Add(-time.Second)
			if value, err := e.Evaluate(x); !errors.Is(err, ErrInterrupted) {
				t.Errorf("%s, too late, is %v, %v", text, value, err)
			}
		})
	}
}

// H9 The clock is looked at before the first expression, before one without a plan, and
// once plans have spent so much.
func TestPlansLookAtTheClock(t *testing.T) {
	s := scopeOf(t)
	without, cheap := expression(t, s, "dyn(true)"), expression(t, s, "true")
	dear := &Expression{planned: planned{plan: spendingPlan(maxUnwatched - 1)}}
	for _, row := range []struct {
		before []*Expression
		last   *Expression
	}{{nil, without}, {[]*Expression{cheap, dear}, cheap}, {[]*Expression{dear}, cheap}} {
		evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
			if _, err := e.Evaluate(without); err != nil { // which looks
				t.Error(err)
			}
			e.deadline = time.Now().Add(-time.Second)
			for _, x := range row.before {
				if _, err := e.Evaluate(x); err != nil {
					t.Error(err)
				}
			}
			if _, err := e.Evaluate(row.last); !errors.Is(err, ErrInterrupted) {
				t.Errorf("after %d: %v", len(row.before), err)
			}
		})
	}
}

// H9 The clock is looked at between two comparisons of containers, which cost five units
// however large they are, and after the last one.
func TestPlansLookAtTheClockBetweenComparisons(t *testing.T) {
	s := scopeOf(t)
	last := expression(t, s, "true")
	many := "3 in ([1" + strings.Repeat(", 1", fewElements) + "] + [2])"
	for text, twice := range map[string]bool{
		"object.spec == object.spec": false, "object.spec in [object.spec]": false, many: false, "object.spec.replicas == 1 && false": false,
		"object.spec == object.spec && object.spec != oldObject.spec": true, "[1, 2].exists(x, object.spec == [object.spec])": true,
		many + " || " + many: true, "[1, 2].exists(x, [object.spec] in [[oldObject.spec], [oldObject.metadata]])": true,
	} {
		x := expression(t, s, text)
		evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
			if _, err := e.Evaluate(expression(t, s, "object.spec == oldObject.spec")); err != nil { // which converts both
				t.Error(err)
			}
			e.unwatched = maxUnwatched
			e.deadline = time.Now().Add(-time.Second)
			_, err := e.Evaluate(x)
			if errors.Is(err, ErrInterrupted) != twice {
				t.Errorf("%s: %v", text, err)
			}
			if _, err := e.Evaluate(last); errors.Is(err, ErrInterrupted) != !strings.HasSuffix(text, "false") {
				t.Errorf("after %s: %v", text, err)
			}
		})
	}
}

// spendingPlan costs something.
type spendingPlan uint64

func (p spendingPlan) eval(e *Evaluation) ref.Val {
	e.cost += uint64(p)
	return types.True
}

// H5 What costs more than an expression may is CEL's to evaluate, whose error it is.
func TestPlansKeepTheLimit(t *testing.T) {
	evaluation(t, scopeOf(t), update, time.Time{}, func(e *Evaluation) {
		for cost, want := range map[int64]bool{ExpressionBudget: true, ExpressionBudget + 1: false} {
			if _, spent, knew := e.follow(planned{plan: spendingPlan(cost)}); knew != want || spent != cost {
				t.Errorf("a plan that costs %d: known %v, at %d", cost, knew, spent)
			}
		}
	})
	ten := "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all("
	s := scopeOf(t)
	x := expression(t, s, strings.Repeat(ten+"a, ", 6)+"true))))))") // 10^6 turns
	evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
		if _, _, knew := e.follow(x.planned); knew || e.turns > 500_000 {
			t.Errorf("it went on for %d turns, and knew: %v", e.turns, knew)
		}
	})
}

// What panics in a function of CEL's values is an error, as it is to CEL, of the expression and
// of a variable: bytes are no key that a map could have.
func TestPlansContainPanics(t *testing.T) {
	s := scopeOf(t, "key=b'a'", "map={dyn(1): 'a'}", "found=variables.key in variables.map")
	for _, text := range []string{"variables.key in variables.map", "[1].all(x, variables.key in variables.map)", "variables.found"} {
		x := expression(t, s, text)
		if x.planned.plan == nil {
			t.Errorf("%s has no plan", text)
		}
		evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
			if value, err := e.Evaluate(x); !failed(err) || len(e.locals) > 0 || e.frame != (frame{}) {
				t.Errorf("%s is %v, %v, and leaves %d locals, %v", text, value, err, len(e.locals), e.frame)
			}
		})
		plansAgree(t, variablesOf(decode(t, update)), s, x, Given{})
	}
}

func failed(err error) bool {
	_, own := errors.AsType[*ExpressionError](err)
	return own
}

// A plan leaves nothing behind of what its loops were about.
func TestPlansForgetLocals(t *testing.T) {
	s := scopeOf(t)
	x := expression(t, s, "object.spec.list.map(x, object.spec.list.map(y, y + x))")
	evaluation(t, s, update, time.Time{}, func(e *Evaluation) {
		if _, err := e.Evaluate(x); err != nil || len(e.locals) > 0 || e.frame != (frame{}) {
			t.Errorf("%v, %d locals, %v", err, len(e.locals), e.frame)
		}
		for _, v := range e.locals[:cap(e.locals)] {
			if v != nil {
				t.Errorf("a local is %v", v)
			}
		}
	})
}

// FuzzPlan tries any expression that compiles, as one of a policy, over any review that
// decodes: what comes of it is what comes of it by CEL.
func FuzzPlan(f *testing.F) {
	for _, text := range slices.Sorted(maps.Keys(usualRules)) {
		f.Add(text, update)
	}
	for _, text := range unusualRules {
		f.Add(text, update)
	}
	s := NewCompiler().NewScope(Declarations{Variables: true, Params: true})
	if err := s.Declare("list", "object.spec.list.map(x, x * 2)"); err != nil {
		f.Fatal(err)
	}
	fuzz.Run(f, func(t testing.TB, text, review string) {
		x, err := s.Compile(text, AnythingElse)
		if err != nil || x.planned.plan == nil {
			return
		}
		body := codec.NewBody([]byte(review), nil)
		defer body.Release()
		r := codec.AcquireReview()
		defer codec.ReleaseReview(r)
		if r.Decode(body) == nil {
			plansAgree(t, variablesOf(r), s, x, Given{})
		}
	})
}

// reviewOf decodes a review, which nothing else does until the end.
func reviewOf(t *rapid.T, text string) *codec.Review {
	body, review := codec.NewBody([]byte(text), nil), codec.AcquireReview()
	t.Cleanup(func() {
		codec.ReleaseReview(review)
		body.Release()
	})
	if err := review.Decode(body); err != nil {
		t.Fatal(err)
	}
	return review
}
