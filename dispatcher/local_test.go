// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// The second Hook is a Go function. What is here holds for every Hook: the dispatcher
// knows neither this one nor webhooks.

type decide = func(context.Context, hook.Question) (codec.Response, error)

func allow(context.Context, hook.Question) (codec.Response, error) {
	return codec.Response{Allowed: true}, nil
}

func refuse(context.Context, hook.Question) (codec.Response, error) {
	return codec.Response{Message: "not today"}, nil
}

func fail(context.Context, hook.Question) (codec.Response, error) {
	return codec.Response{}, errors.New("out of order")
}

func crash(context.Context, hook.Question) (codec.Response, error) { panic("swordfish") }

// hang answers long after anybody waits for it.
func hang(_ context.Context, q hook.Question) (codec.Response, error) {
	<-time.After(time.Until(q.Deadline) + time.Hour)
	return codec.Response{Allowed: true}, nil
}

// locals is a chain of Go functions.
type locals struct {
	t     *testing.T
	ctx   context.Context // of admissions; none: Background
	cel   *celenv.Compiler
	list  []*chain.Entry
	funcs []*hook.Func
}

// add adds an Entry for pods, changed by change.
func (l *locals) add(name string, f decide, change func(*chain.Entry)) *chain.Entry {
	l.t.Helper()
	h := hook.Local(f)
	l.funcs = append(l.funcs, h)
	e := &chain.Entry{ID: hook.ID{Configuration: "local", Name: name}, Hook: h, Timeout: 2 * time.Second}
	e.Spec = match.Spec{Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}}
	matcher, err := match.Compile(e.Spec, l.cel)
	if err != nil {
		l.t.Fatal(err)
	}
	e.Matcher = matcher
	if change != nil {
		change(e)
	}
	l.list = append(l.list, e)
	return e
}

// close waits for the functions.
func (l *locals) close() {
	for _, f := range l.funcs {
		f.Close()
	}
}

func (l *locals) cluster() *chain.Cluster {
	c := (&chain.Chain{Positions: map[string]int{}}).With(slices.SortedStableFunc(slices.Values(l.list), chain.Compare))
	return &chain.Cluster{Name: "east", Validating: c, Mutating: c}
}

// admit dispatches the creation of a Pod, and returns when no Hook is asked any more.
func (l *locals) admit(phase chain.Phase, dryRun bool) dispatcher.Verdict {
	l.t.Helper()
	d, err := dispatcher.New(dispatcher.Config{Grace: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		l.t.Fatal(err)
	}
	v := l.dispatch(d, dispatcher.Request{Phase: phase}, dryRun)
	d.Wait()
	return v
}

// dispatch has d decide the creation of a Pod, whose bytes are overwritten when they are
// released. What req does not say is as for a cluster with all Entries.
func (l *locals) dispatch(d *dispatcher.Dispatcher, req dispatcher.Request, dryRun bool) dispatcher.Verdict {
	l.t.Helper()
	text := zeros(10)
	if dryRun {
		text = bytes.Replace(text, []byte(`"dryRun":false`), []byte(`"dryRun":true`), 1)
	}
	review := codec.AcquireReview()
	body := codec.NewBody(text, scribble)
	if err := review.Decode(body); err != nil {
		l.t.Fatal(err)
	}
	body.Release()
	defer codec.ReleaseReview(review)
	if req.Cluster == nil {
		req.Cluster = l.cluster()
	}
	req.Review, req.Snapshot, req.Deadline = review, "snapshot", time.Now().Add(3*time.Second)
	ctx := l.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	var v dispatcher.Verdict
	d.Dispatch(ctx, req, &v)
	return v
}

// play runs a test with virtual time.
func play(t *testing.T, f func(*locals)) {
	t.Helper()
	cel := celenv.NewCompiler()
	synctest.Test(t, func(t *testing.T) {
		l := &locals{t: t, cel: cel}
		defer l.close()
		f(l)
	})
}

// Modes and failure policies mean for a function what they mean for a webhook.
func TestLocalModes(t *testing.T) {
	const fine, no, broken, blown, stuck = "allows", "denies", "fails", "panics", "hangs"
	functions := map[string]decide{fine: allow, no: refuse, broken: fail, blown: crash, stuck: hang}
	causes := map[string]hook.Cause{broken: hook.BadAnswer, blown: hook.Panic, stuck: hook.Timeout}
	for name, f := range functions {
		for _, mode := range []chain.Mode{chain.Enforce, chain.Warn, chain.Shadow} {
			for _, policy := range []chain.FailurePolicy{chain.Fail, chain.Ignore} {
				for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
					t.Run(fmt.Sprint(name, mode, policy, phase), func(t *testing.T) {
						play(t, func(l *locals) {
							var asked atomic.Int32
							counted := func(ctx context.Context, q hook.Question) (codec.Response, error) {
								asked.Add(1)
								return f(ctx, q)
							}
							l.add("f", counted, func(e *chain.Entry) { e.Mode, e.FailurePolicy = mode, policy })
							begin := time.Now()
							v := l.admit(phase, false)
							failed := name != fine && name != no
							want := mode != chain.Enforce || name == fine || failed && policy == chain.Ignore
							if v.Response.Allowed != want {
								t.Fatalf("%+v", v.Response)
							}
							if took := time.Since(begin); name == stuck && took != 2*time.Second || name != stuck && took != 0 {
								t.Errorf("it took %v", took)
							}
							if mode == chain.Shadow {
								if len(v.Outcomes) != 0 || len(v.Response.Warnings) != 0 || asked.Load() != 1 {
									t.Errorf("asked %d times, %+v", asked.Load(), v)
								}
								return
							}
							warned := name != fine && (mode == chain.Warn || failed && policy == chain.Ignore)
							if asked.Load() != 1 || (len(v.Response.Warnings) == 1) != warned {
								t.Errorf("asked %d times, warnings are %q", asked.Load(), v.Response.Warnings)
							}
							if o := v.Outcomes[0]; o.Cause != causes[name] || strings.Contains(v.Response.Message, "swordfish") {
								t.Errorf("cause %q, %+v", o.Cause, v.Response)
							}
							if name == no && mode == chain.Enforce && (v.Response.Code != 403 || v.Response.Message != `admission webhook "f" denied the request: not today`) {
								t.Errorf("%+v", v.Response)
							}
						})
					})
				}
			}
		}
	}
}

// A Hook is told for whom it is asked, and what about.
func TestQuestion(t *testing.T) {
	for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
		play(t, func(l *locals) {
			var got string
			e := l.add("f", func(_ context.Context, q hook.Question) (codec.Response, error) {
				got = fmt.Sprintf("%s %v mutating=%v round=%d repeatable=%v shadow=%v wait=%v in %v of %v",
					q.Cluster, q.ClusterLabels, q.Mutating, q.Round, q.Repeatable, q.Shadow, q.Wait, time.Until(q.Deadline), q.Timeout)
				return codec.Response{Allowed: true}, nil
			}, nil)
			cluster := l.cluster()
			cluster.Labels = map[string]string{"region": "north"}
			ask := func(dryRun bool, want string) {
				t.Helper()
				d := l.dispatcher(nil)
				l.dispatch(d, dispatcher.Request{Cluster: cluster, Phase: phase}, dryRun)
				if d.Wait(); got != want {
					t.Errorf("%s: asked %s, want %s", phase, got, want)
				}
			}
			mutating := phase == chain.Mutating
			ask(false, fmt.Sprintf("east map[region:north] mutating=%v round=0 repeatable=true shadow=false wait=true in 2s of 2s", mutating))
			e.Mode, e.SideEffects, e.Timeout = chain.Shadow, chain.SideEffectsNoneOnDryRun, 5*time.Second
			ask(false, fmt.Sprintf("east map[region:north] mutating=%v round=0 repeatable=false shadow=true wait=false in 2.99s of 5s", mutating))
			ask(true, fmt.Sprintf("east map[region:north] mutating=%v round=0 repeatable=true shadow=true wait=false in 2.99s of 5s", mutating))
			e.Mode, e.FailurePolicy = chain.Enforce, chain.Ignore
			ask(false, fmt.Sprintf("east map[region:north] mutating=%v round=0 repeatable=false shadow=false wait=false in 2.99s of 5s", mutating))
		})
	}
}

// What a denial says comes from the Entry.
func TestTextOfADenial(t *testing.T) {
	play(t, func(l *locals) {
		l.add("a", refuse, func(e *chain.Entry) { e.DenialPrefix = "ValidatingAdmissionPolicy 'a' with binding 'b' denied request" })
		l.add("c", fail, func(e *chain.Entry) { e.Noun = "policy" })
		want := "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: not today\n" +
			`Internal error occurred: failed calling policy "c": BadAnswer after 0s (local/c, failurePolicy Fail; this is a platform problem, not a decision of the policy): out of order`
		if diff := cmp.Diff(want, l.admit(chain.Validating, false).Response.Message); diff != "" {
			t.Error(diff)
		}
	})
}

// A function that nobody waits for any more still has what it was asked about, and knows
// that.
func TestHangingFunctionKeepsItsView(t *testing.T) {
	for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
		play(t, func(l *locals) {
			read := make(chan string, 1)
			l.add("late", func(ctx context.Context, q hook.Question) (codec.Response, error) {
				resp, err := hang(ctx, q)
				read <- fmt.Sprintf("%s %s %s %s over=%v", q.UID, q.Review.Name, q.Review.User.Username, q.Object.Raw[:25], q.Over.Load())
				return resp, err
			}, nil)
			v := l.admit(phase, false)
			if v.Response.Allowed || v.Outcomes[0].Cause != hook.Timeout {
				t.Errorf("%+v", v.Response)
			}
			if got, want := <-read, `u-1 web ann {"apiVersion":"v1","kind" over=true`; got != want {
				t.Errorf("it read %q, want %q", got, want)
			}
		})
	}
}

// asked notes who is asked, in which round, whether under the uid of the review, and
// about which labels.
type asked struct {
	mu   sync.Mutex
	list []string
}

func (a *asked) note(name string, f decide) decide {
	return func(ctx context.Context, q hook.Question) (codec.Response, error) {
		var labels []string
		for _, l := range q.Object.Labels {
			labels = append(labels, string(l.Key))
		}
		a.mu.Lock()
		a.list = append(a.list, fmt.Sprintf("%s round=%d %v %v", name, q.Round, string(q.UID) == "u-1", labels))
		a.mu.Unlock()
		return f(ctx, q)
	}
}

// label sets a label.
func label(name string) decide {
	return func(context.Context, hook.Question) (codec.Response, error) {
		return codec.Response{Allowed: true, Patch: fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels/%s","value":"1"}]`, name)}, nil
	}
}

// Functions mutate one after the other, policies first; who was asked before somebody
// changed the object is asked again.
func TestLocalMutation(t *testing.T) {
	play(t, func(l *locals) {
		var a asked
		l.add("one", a.note("one", label("one")), func(e *chain.Entry) { e.Reinvocation = true })
		l.add("two", a.note("two", label("two")), nil)
		l.add("policy", a.note("policy", label("policy")), func(e *chain.Entry) { e.Stage = chain.StagePolicy })
		v := l.admit(chain.Mutating, false)
		want := []string{"policy round=0 true []", "one round=0 true [policy]", "two round=0 true [policy one]", "one round=1 false [policy one two]"}
		if diff := cmp.Diff(want, a.list); diff != "" {
			t.Error(diff)
		}
		if !v.Response.Allowed || bytes.Count(v.Response.Patch, []byte(`"op"`)) != 4 {
			t.Errorf("%s", v.Response.Patch)
		}
	})
}

// Who denies ends the mutation: nobody is asked again.
func TestDenialEndsTheMutation(t *testing.T) {
	play(t, func(l *locals) {
		var a asked
		l.add("one", a.note("one", label("one")), func(e *chain.Entry) { e.Reinvocation = true })
		l.add("two", a.note("two", label("two")), nil)
		l.add("three", a.note("three", refuse), nil)
		if v := l.admit(chain.Mutating, false); v.Response.Allowed || len(a.list) != 3 {
			t.Errorf("allowed %v, asked %q", v.Response.Allowed, a.list)
		}
	})
}

// Who joins when it is ready is not asked before, visibly, and blocks nothing.
func TestPendingIsNotAsked(t *testing.T) {
	play(t, func(l *locals) {
		l.add("new", refuse, func(e *chain.Entry) { e.Pending = errors.New("it has not answered") })
		v := l.admit(chain.Validating, false)
		if o := v.Outcomes[0]; !v.Response.Allowed || o.Result != dispatcher.FailedOpen || o.Cause != hook.Pending || len(v.Response.Warnings) != 1 {
			t.Errorf("%+v, %+v", o, v.Response)
		}
		review := codec.AcquireReview()
		defer codec.ReleaseReview(review)
		body := codec.NewBody(zeros(10), nil)
		defer body.Release()
		if err := review.Decode(body); err != nil {
			t.Fatal(err)
		}
		if w := dispatcher.Explain(review, l.cluster(), chain.Validating).Webhooks[0]; w.Called || w.Reason != "Pending" || w.Detail != "it has not answered" {
			t.Errorf("explained as %+v", w)
		}
	})
}

// Stages are asked in the order of kube-apiserver's plugins, a later one only if
// everything before allowed.
func TestStages(t *testing.T) {
	for denies, want := range map[string][]string{
		"":       {"policy", "hook", "quota"},
		"policy": {"policy"},
		"hook":   {"policy", "hook"},
		"quota":  {"policy", "hook", "quota"},
	} {
		play(t, func(l *locals) {
			var a asked
			for name, stage := range map[string]chain.Stage{"quota": chain.StageTransactional, "hook": chain.StageValidating, "policy": chain.StagePolicy} {
				f := allow
				if name == denies {
					f = refuse
				}
				l.add(name, a.note(name, f), func(e *chain.Entry) { e.Stage = stage })
			}
			if v := l.admit(chain.Validating, false); v.Response.Allowed != (denies == "") {
				t.Errorf("%s denies: %+v", denies, v.Response)
			}
			var got []string
			for _, line := range a.list {
				got = append(got, strings.Fields(line)[0])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s denies: asked are %q, want %q", denies, got, want)
			}
		})
	}
}

// quota is a Hook that can take back what it did.
type quota struct {
	*hook.Func
	undone chan string
}

func (q quota) Undo(_ context.Context, asked hook.Question) {
	<-time.After(time.Second) // no admission waits for it
	q.undone <- string(asked.Review.Name)
	panic("swordfish")
}

// What a Hook of the transactional stage did is taken back where the admission does not
// take place: it was denied, or a dry run.
func TestUndo(t *testing.T) {
	for _, c := range []struct {
		name         string
		stage        chain.Stage
		quota, other decide
		dryRun       bool
		want         []string
	}{
		{"allowed", chain.StageTransactional, allow, allow, false, nil},
		{"denied by another", chain.StageTransactional, allow, refuse, false, []string{"web"}},
		{"denied by itself", chain.StageTransactional, refuse, allow, false, []string{"web"}},
		{"hangs", chain.StageTransactional, hang, allow, false, []string{"web"}},
		{"a dry run", chain.StageTransactional, allow, allow, true, []string{"web"}},
		{"of another stage", chain.StageValidating, allow, refuse, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(l *locals) {
				undone := make(chan string, 9)
				e := l.add("quota", c.quota, func(e *chain.Entry) { e.Stage = c.stage })
				e.Hook = quota{e.Hook.(*hook.Func), undone}
				l.add("other", c.other, func(e *chain.Entry) { e.Stage = c.stage })
				l.admit(chain.Validating, c.dryRun)
				close(undone)
				var got []string
				for name := range undone {
					got = append(got, name)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("undone for %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A function is explained like a webhook, but for where it is. Its side effects matter in
// a dry run only.
func TestExplainLocal(t *testing.T) {
	play(t, func(l *locals) {
		for _, stage := range []chain.Stage{chain.StageTransactional, chain.StageValidating, chain.StagePolicy} {
			l.add(stage.String(), allow, func(e *chain.Entry) { e.Stage, e.SideEffects = stage, chain.SideEffectsSome })
		}
		l.add("unruly", allow, func(e *chain.Entry) {
			e.Stage, e.SideEffects, e.Spec.Rules = chain.StageTransactional, chain.SideEffectsSome, nil
		})
		review := codec.AcquireReview()
		defer codec.ReleaseReview(review)
		body := codec.NewBody(zeros(10), nil)
		defer body.Release()
		if err := review.Decode(body); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range dispatcher.Explain(review, l.cluster(), chain.Validating).Webhooks {
			got = append(got, fmt.Sprintf("%s called=%v order=%d rule=%q payload=%q url=%q", w.Webhook, w.Called, w.Order, w.Rule, w.Payload, w.URL))
		}
		const rule = `* of pods in ""/v1`
		want := []string{
			fmt.Sprintf(`Policy called=true order=1 rule=%q payload="" url=""`, rule),
			fmt.Sprintf(`Validating called=true order=2 rule=%q payload="" url=""`, rule),
			fmt.Sprintf(`Transactional called=true order=3 rule=%q payload="" url=""`, rule),
			`unruly called=true order=3 rule="" payload="" url=""`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
