// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// answer gives to what decide says, which it says on the goroutine that asks: the cost of a
// policy is bounded, and its deadline is looked at in every loop.
func answer(to hook.Receiver, decide func() (codec.Response, error)) {
	begin := time.Now()
	resp, err := decide()
	var call *hook.CallError
	if errors.As(err, &call) {
		call.Elapsed = time.Since(begin)
	}
	to.Receive(resp, err)
}

// variablesOf returns what a policy is evaluated with: nobody waits for a Shadow policy.
func variablesOf(q *hook.Question) *celenv.Variables {
	if q.Shadow {
		return &celenv.Variables{Input: q.Variables().Input}
	}
	return q.Variables()
}

// inTurn evaluates in the turn of the cluster, for which size bytes must be looked at.
func inTurn(q *hook.Question, size int, evaluate func()) error {
	if size > 0 {
		done, err := q.Turn(size)
		if err != nil {
			return &hook.CallError{Cause: hook.Shed, Err: err}
		}
		defer done()
	}
	evaluate()
	return nil
}

// found is what a policy is evaluated with besides the review: once with each of params.
type found struct {
	params    []*Param
	namespace *celenv.Object
}

func (f found) each() iter.Seq[given] {
	return func(yield func(given) bool) {
		for _, p := range f.params {
			if !yield(given{p, f.namespace}) {
				return
			}
		}
	}
}

// find asks the cluster, or the sources, for what the policy is evaluated with. The error
// is a *hook.CallError, a *hook.Refusal, or one of configuration.
func (c *common) find(params *Params, q *hook.Question) (f found, err error) {
	if f.params, err = params.Find(q); err != nil {
		return found{}, err
	}
	if c.namespace != celenv.NamespaceUnused {
		if f.namespace, err = NamespaceObject(q); err != nil {
			return found{}, err
		}
	}
	return f, nil
}

// isAnswer reports whether an error of find is what the Hook answers, whatever it is about.
func isAnswer(err error) bool {
	_, shed := errors.AsType[*hook.CallError](err)
	_, refused := errors.AsType[*hook.Refusal](err)
	return shed || refused
}

// explained is the Question of who explains: nobody waits for its answer.
func explained(v *hook.View) *hook.Question {
	return &hook.Question{View: v, Deadline: time.Now().Add(explainTime), Shadow: true}
}

// explainTime is how long Explain waits for what a cluster stores.
const explainTime = 5 * time.Second

// depends reports whether nobody can be asked for what the policy is evaluated with, for which
// find has returned err.
func (c *common) depends(params *Params, v *hook.View, err error) bool {
	return errors.Is(err, hook.ErrNotAsked) || params.unknown(v) || c.namespace != celenv.NamespaceUnused && namespacesOf(v) == nil && len(v.Review.Namespace) > 0
}

// dependsOnCluster is what Explain says then.
const dependsOnCluster = "depends on what the cluster stores, which was not asked"

// step names the param that the steps after it are about.
func (p *Params) step(param *Param) []string {
	if p == nil {
		return nil
	}
	return []string{fmt.Sprintf("params: %s %s", p.Kind(), param)}
}

// hold evaluates the matchConditions as the matcher has, which keeps what they came to:
// here they are evaluated for what they fail with. step notes what each came to.
func (c *common) hold(e *celenv.Evaluation, step func(field, came string, err error)) (bool, error) {
	var errs []error
	budget, untrue := celenv.Budget, false
	for i, condition := range c.conditions {
		holds, left, err := e.Condition(condition, budget)
		step(fmt.Sprintf("matchConditions[%d]", i), fmt.Sprint(holds), err)
		switch {
		case left < 0:
			return false, err
		case err != nil:
			errs = append(errs, err)
		}
		untrue = untrue || err == nil && !holds
		budget = left
	}
	if !untrue && len(errs) > 0 {
		return false, joined(errs)
	}
	return !untrue, nil
}

// isOwn reports whether the error is of the one expression alone.
func isOwn(err error) bool {
	var own *celenv.ExpressionError
	return errors.As(err, &own)
}

func discreet(err error) error {
	var own *celenv.ExpressionError
	if errors.As(err, &own) {
		return own.Discreet()
	}
	if _, merging := errors.AsType[*mergeError](err); merging {
		return errors.New("error applying patch")
	}
	return err
}

func shown(v celenv.Value, err error) string {
	if err != nil {
		return ""
	}
	return cut(v.JSON())
}

// maxShown is how much of a value explain shows, in bytes.
const maxShown = 1 << 10

func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + " ..."
}

// shownVariables are the variables that somebody has asked for, a line each.
func shownVariables(e *celenv.Evaluation) (lines []string) {
	for _, v := range e.Known() {
		lines = append(lines, "variables."+v.Name+": "+cut(v.JSON()))
	}
	return lines
}

// joined is several errors in the words of an aggregate of apimachinery's.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return &several{errs}
}

type several struct{ errs []error }

func (s *several) Error() string {
	var texts []string
	for _, err := range s.errs {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (s *several) Unwrap() []error { return s.errs }
