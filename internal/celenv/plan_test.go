// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

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
	"'name: ' + object.metadata.name":                                                           `"name: web"`,
	"request.operation == 'UPDATE' && cluster.labels.env == 'prod' && params == null":           "true",
	"[object.spec.replicas, object.spec][0] == 3 && object.spec.list == [1, 2]":                 "true",
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
