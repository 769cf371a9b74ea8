// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// Instance is a plugin with a configuration. It keeps its state from one Snapshot to the
// next while the configuration stays.
type Instance struct {
	calls     *hook.Calls
	validator Validator // nil: it takes no part in the phase
	mutator   Mutator
}

// Configure returns the plugin with the configuration in raw, which is JSON and may be
// empty, or what is wrong with that: fields that cannot be decoded as the decoder reports
// them, or values that the plugin does not take, with paths below the configuration. Its
// calls run on w.
func (p Plugin) Configure(raw []byte, w *hook.Workers) (made *Instance, invalid field.ErrorList, undecodable []error) {
	defer func() {
		if r := recover(); r != nil {
			made, undecodable = nil, []error{fmt.Errorf("plugin %s has panicked over it: %s", p.Name, crash.Text(r))}
		}
	}()
	controller, invalid, undecodable := p.configure(raw)
	if len(invalid)+len(undecodable) > 0 {
		return nil, invalid, undecodable
	}
	made = &Instance{calls: w.NewCalls()}
	made.validator, _ = controller.(Validator)
	made.mutator, _ = controller.(Mutator)
	if made.validator == nil && made.mutator == nil {
		return nil, nil, []error{fmt.Errorf("plugin %s is neither a Validator nor a Mutator", p.Name)}
	}
	return made, nil, nil
}

// Mutates reports whether the plugin takes part in the mutating phase.
func (i *Instance) Mutates() bool { return i.mutator != nil }

// Validates reports whether the plugin takes part in the validating phase.
func (i *Instance) Validates() bool { return i.validator != nil }

// Hook returns the plugin as a Hook. It is a hook.Undoer if the plugin is an Undoer.
func (i *Instance) Hook() hook.Hook {
	if undoer, ok := i.validator.(Undoer); ok {
		return undoing{i, undoer}
	}
	return i
}

// undoing is a plugin that can take back what it did.
type undoing struct {
	*Instance
	undoer Undoer
}

// Undo implements hook.Undoer.
func (u undoing) Undo(ctx context.Context, q hook.Question) { u.undoer.Undo(ctx, &Attributes{q}) }

// Ask implements hook.Hook. The Hook must be of a phase that the plugin takes part in.
func (i *Instance) Ask(ctx context.Context, q hook.Question, to hook.Receiver) hook.Outstanding {
	i.calls.Call(ctx, q, to, i.decide)
	return nil
}

func (i *Instance) decide(ctx context.Context, q hook.Question) (codec.Response, error) {
	ctx, cancel := context.WithDeadline(ctx, q.Deadline)
	defer cancel()
	a := &Attributes{q}
	if q.Mutating {
		answer, err := i.mutator.Mutate(ctx, a)
		return answer.response(err)
	}
	answer, err := i.validator.Validate(ctx, a)
	answer.Patch = nil
	return answer.response(err)
}

var errNoPatch = errors.New("its patch cannot be written as JSON")

// response is the answer within the limits of a webhook's.
func (a *Answer) response(err error) (codec.Response, error) {
	if err != nil {
		return codec.Response{}, worded(err)
	}
	resp := codec.Response{Allowed: a.Denied == nil, Warnings: a.Warnings}
	for _, key := range slices.Sorted(maps.Keys(a.Annotations)) {
		resp.Annotations = append(resp.Annotations, codec.Annotation{Key: key, Value: a.Annotations[key]})
	}
	switch {
	case a.Denied != nil:
		deny(&resp, a.Denied)
	case len(a.Patch) > 0:
		if resp.Patch, err = json.Marshal(a.Patch); err != nil {
			return codec.Response{}, errNoPatch
		}
	}
	return codec.Clean(resp), nil
}

func deny(resp *codec.Response, s *metav1.Status) {
	resp.Code, resp.Reason, resp.Message = s.Code, string(s.Reason), s.Message
	if s.Code == 0 {
		resp.Code = http.StatusForbidden
		if s.Reason == "" {
			resp.Reason = string(metav1.StatusReasonForbidden)
		}
	}
	if s.Details == nil {
		return
	}
	resp.RetryAfterSeconds = s.Details.RetryAfterSeconds
	for _, c := range s.Details.Causes {
		resp.Causes = append(resp.Causes, codec.Cause{Type: string(c.Type), Field: c.Field, Message: c.Message})
	}
}

// worded is an error that says that there is no answer, fit for a message.
func worded(err error) error {
	if _, ok := errors.AsType[*hook.CallError](err); ok {
		return err
	}
	return errors.New(codec.CleanText(err.Error()))
}
