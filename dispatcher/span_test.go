// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// mute is a Hook that answers a minute too late.
type mute struct{}

func (mute) Ask(_ context.Context, q hook.Question, to hook.Receiver) hook.Outstanding {
	time.AfterFunc(time.Until(q.Deadline)+time.Minute, func() { to.Receive(codec.Response{Allowed: true}, nil) })
	return nil
}

// said is what a span of a call says, in one line.
func said(s sdk.ReadOnlySpan) string {
	var words []string
	for _, a := range s.Attributes() {
		words = append(words, strings.TrimPrefix(string(a.Key), "admission.")+"="+a.Value.String())
	}
	words = append(words, s.Status().Code.String(), s.Status().Description)
	return s.Name() + ": " + strings.TrimSpace(strings.Join(words, " "))
}

// The call of a Hook has a span where its admission has one, which ends with what came
// of the call: of a Shadow one after the admission, and of one that is given up on too.
func TestSpans(t *testing.T) {
	start := func(name, mode string, round int) string {
		return fmt.Sprintf("webhook %[1]s: webhook=%[1]s configuration=local mode=%[2]s round=%[3]d ", name, mode, round)
	}
	for name, c := range map[string]struct {
		phase chain.Phase
		add   func(*locals)
		want  []string
	}{
		"allows": {chain.Validating, func(l *locals) { l.add("f", allow, nil) }, []string{
			start("f", "Enforce", 0) + "outcome=allowed fail_open=false patch.operations=0 Unset",
		}},
		"a policy": {chain.Validating, func(l *locals) { l.add("f", allow, func(e *chain.Entry) { e.Noun = "policy" }) }, []string{
			"policy" + strings.TrimPrefix(start("f", "Enforce", 0), "webhook") + "outcome=allowed fail_open=false patch.operations=0 Unset",
		}},
		"denies": {chain.Validating, func(l *locals) { l.add("f", refuse, nil) }, []string{
			start("f", "Enforce", 0) + "outcome=denied fail_open=false patch.operations=0 Unset",
		}},
		"fails": {chain.Validating, func(l *locals) { l.add("f", fail, nil) }, []string{
			start("f", "Enforce", 0) + "outcome=failed fail_open=false patch.operations=0 error.type=BadAnswer Error BadAnswer",
		}},
		"fails, Ignore": {chain.Validating, func(l *locals) {
			l.add("f", fail, func(e *chain.Entry) { e.FailurePolicy = chain.Ignore })
		}, []string{
			start("f", "Enforce", 0) + "outcome=failed_open fail_open=true patch.operations=0 error.type=BadAnswer Error BadAnswer",
		}},
		"denies, Warn": {chain.Validating, func(l *locals) {
			l.add("f", refuse, func(e *chain.Entry) { e.Mode = chain.Warn })
		}, []string{
			start("f", "Warn", 0) + "outcome=softened fail_open=false patch.operations=0 Unset",
		}},
		"fails, Shadow": {chain.Validating, func(l *locals) {
			l.add("f", fail, func(e *chain.Entry) { e.Mode, e.FailurePolicy = chain.Shadow, chain.Ignore })
		}, []string{
			start("f", "Shadow", 0) + "outcome=failed_open fail_open=false patch.operations=0 error.type=BadAnswer Error BadAnswer",
		}},
		"does not answer": {chain.Validating, func(l *locals) {
			l.add("f", allow, func(e *chain.Entry) { e.Hook = mute{} })
		}, []string{
			start("f", "Enforce", 0) + "outcome=failed fail_open=false patch.operations=0 error.type=Timeout Error Timeout",
		}},
		"is given up on": {chain.Validating, func(l *locals) {
			l.add("f", allow, func(e *chain.Entry) { e.Hook = mute{} })
			l.add("no", refuse, nil)
		}, []string{
			start("f", "Enforce", 0) + "outcome=abandoned fail_open=false patch.operations=0 Unset",
			start("no", "Enforce", 0) + "outcome=denied fail_open=false patch.operations=0 Unset",
		}},
		"mutate": {chain.Mutating, func(l *locals) {
			l.add("one", label("one"), func(e *chain.Entry) { e.Reinvocation = true })
			l.add("two", label("two"), nil)
			l.add("wrong", func(context.Context, hook.Question) (codec.Response, error) {
				return codec.Response{Allowed: true, Patch: []byte(`[{"op":"remove","path":"/nope"}]`)}, nil
			}, func(e *chain.Entry) { e.Mode = chain.Warn })
		}, []string{
			start("one", "Enforce", 0) + "outcome=allowed fail_open=false patch.operations=1 Unset",
			start("one", "Enforce", 1) + "outcome=allowed fail_open=false patch.operations=1 Unset",
			start("two", "Enforce", 0) + "outcome=allowed fail_open=false patch.operations=1 Unset",
			start("wrong", "Warn", 0) + "outcome=softened fail_open=false patch.operations=0 error.type=BadPatch Unset",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(l *locals) {
				kept := tracetest.NewSpanRecorder()
				tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(kept)).Tracer("test")
				var parent trace.Span
				l.ctx, parent = tracer.Start(t.Context(), "admission")
				c.add(l)
				l.admit(c.phase, false)
				var got []string
				for _, s := range kept.Ended() {
					got = append(got, said(s))
					if s.Parent().SpanID() != parent.SpanContext().SpanID() {
						t.Errorf("%s is not a part of the admission", s.Name())
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// What a Hook does itself is part of its call's span, and of none where the admission has
// none.
func TestSpanIsThatOfTheHook(t *testing.T) {
	for _, mode := range []chain.Mode{chain.Enforce, chain.Shadow} {
		play(t, func(l *locals) {
			kept := tracetest.NewSpanRecorder()
			tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(kept)).Tracer("test")
			var mu sync.Mutex
			var seen []trace.SpanID
			l.add("f", func(ctx context.Context, q hook.Question) (codec.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, trace.SpanContextFromContext(ctx).SpanID())
				return allow(ctx, q)
			}, func(e *chain.Entry) { e.Mode = mode })
			l.admit(chain.Validating, false)
			l.ctx, _ = tracer.Start(t.Context(), "admission")
			l.admit(chain.Validating, false)
			if ended := kept.Ended(); len(ended) != 1 || len(seen) != 2 || seen[0].IsValid() || seen[1] != ended[0].SpanContext().SpanID() {
				t.Errorf("%s: the calls have %v of %d spans", mode, seen, len(ended))
			}
		})
	}
}
