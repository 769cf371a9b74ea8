// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// patient is a Hook that leaves an Outstanding, and keeps what becomes of it.
type patient struct {
	patience    time.Duration
	await, left func(to hook.Receiver) // what happens then

	mu    sync.Mutex
	order *[]string // of all that is awaited and left, by name
	name  string
}

// awaiting is one Outstanding of a patient Hook.
type awaiting struct {
	*patient
	to  hook.Receiver
	due time.Time
}

func (p *patient) Ask(_ context.Context, _ hook.Question, to hook.Receiver) hook.Outstanding {
	return &awaiting{p, to, time.Now().Add(p.patience)}
}

func (o *awaiting) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*o.order = append(*o.order, what+" "+o.name)
}

func (o *awaiting) Due() time.Time { return o.due }
func (o *awaiting) Await()         { o.note("await"); o.await(o.to) }
func (o *awaiting) Leave()         { o.note("leave"); o.left(o.to) }

var everything = match.Spec{Rules: []admissionregistrationv1.RuleWithOperations{{
	Operations: []admissionregistrationv1.OperationType{"*"},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
}}}

// judged dispatches an admission to webhooks, and returns when nothing of it runs any more.
func judged(t *testing.T, cfg Config, phase chain.Phase, webhooks ...*chain.Entry) Verdict {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range webhooks {
		if w.Matcher, err = match.Compile(everything, nil); err != nil {
			t.Fatal(err)
		}
		w.Timeout = time.Second
	}
	req := request()
	req.Phase, req.Review.Resource.Resource = phase, []byte("pods")
	req.Cluster.Validating, req.Cluster.Mutating = (&chain.Chain{}).With(webhooks), (&chain.Chain{}).With(webhooks)
	var v Verdict
	d.Dispatch(t.Context(), req, &v)
	d.Wait()
	return v
}

func allowing(to hook.Receiver) { to.Receive(codec.Response{Allowed: true}, nil) }
func denying(to hook.Receiver)  { to.Receive(codec.Response{Code: 403}, nil) }
func crashing(hook.Receiver)    { panic("swordfish") }

// A Hook that panics while it is waited for has failed, like one that panics when it is
// asked: its failure policy decides, nobody waits for it any more, and what it has
// answered before stands.
func TestPanicsOfWhatIsAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		await func(hook.Receiver)
		want  Result
	}{
		"before it answers":  {crashing, Failed},
		"after an allow":     {func(to hook.Receiver) { allowing(to); crashing(to) }, Allowed},
		"after a denial":     {func(to hook.Receiver) { denying(to); crashing(to) }, Denied},
		"and answers later":  {func(to hook.Receiver) { time.AfterFunc(time.Millisecond, func() { allowing(to) }); crashing(to) }, Failed},
		"and answers before": {func(to hook.Receiver) { allowing(to); denying(to); crashing(to) }, Allowed},
	} {
		for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
			t.Run(name+", "+phase.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var order []string
					first := &patient{time.Millisecond, c.await, nil, sync.Mutex{}, &order, "first"}
					v := judged(t, Config{}, phase, &chain.Entry{ID: hook.ID{Name: "first"}, Hook: first})
					if v.Panicked || len(v.Outcomes) != 1 || v.Outcomes[0].Result != c.want || v.Response.Allowed != (c.want == Allowed) {
						t.Errorf("%+v", v)
					}
					if failed := v.Outcomes[0].Cause == hook.Panic; failed != (c.want == Failed) {
						t.Errorf("the cause is %s", v.Outcomes[0].Cause)
					}
				})
			})
		}
	}
	for _, mode := range []chain.Mode{chain.Enforce, chain.Shadow} {
		synctest.Test(t, func(t *testing.T) {
			var order []string
			entry := &chain.Entry{Hook: &patient{time.Millisecond, crashing, nil, sync.Mutex{}, &order, "a"}, Mode: mode, FailurePolicy: chain.Ignore}
			if v := judged(t, Config{}, chain.Validating, entry); v.Panicked || !v.Response.Allowed {
				t.Errorf("%v: %+v", mode, v)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // while it is left, as another has denied
		var order []string
		v := judged(t, Config{Grace: time.Millisecond}, chain.Validating,
			&chain.Entry{ID: hook.ID{Name: "no"}, Hook: &patient{time.Millisecond, denying, nil, sync.Mutex{}, &order, "no"}},
			&chain.Entry{ID: hook.ID{Name: "bad"}, Hook: &patient{2 * time.Millisecond, nil, crashing, sync.Mutex{}, &order, "bad"}})
		if v.Panicked || len(v.Outcomes) != 2 || v.Outcomes[0].Result != Denied || v.Outcomes[1].Cause != hook.Panic {
			t.Errorf("%+v", v)
		}
	})
}

// Of what there is to wait for, what is due first is waited for first, and each once. Once
// somebody denies the rest is left, and none is forgotten where the dispatcher itself
// panics before it waits.
func TestOutstandingEndsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		a, b, c func(hook.Receiver)
		broken  bool
		want    []string
		allowed bool
	}{
		"all allow":           {allowing, allowing, allowing, false, []string{"await b", "await c", "await a"}, true},
		"the first denies":    {allowing, denying, allowing, false, []string{"await b", "leave a", "leave c"}, false},
		"the next one denies": {allowing, allowing, denying, false, []string{"await b", "await c", "leave a"}, false},
		"a panic":             {allowing, allowing, allowing, true, []string{"leave a", "leave b", "leave c"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var order []string

				entry := func(name string, patience time.Duration, does func(hook.Receiver)) *chain.Entry {
					return &chain.Entry{ID: hook.ID{Name: name}, Hook: &patient{patience, does, does, sync.Mutex{}, &order, name}}
				}
				webhooks := []*chain.Entry{entry("a", 9*time.Millisecond, c.a), entry("b", 3*time.Millisecond, c.b), entry("c", 6*time.Millisecond, c.c)}
				cfg := Config{Grace: time.Millisecond, Limits: overload.Limits{ShadowCalls: 1}}
				if c.broken {
					cfg.Shadows = []ShadowObserver{crashed{}}
					for range 2 { // the second one is dropped, which its observer is notified of at once
						webhooks = append(webhooks, &chain.Entry{Hook: asking(func(_ hook.Question, to hook.Receiver) {
							time.AfterFunc(time.Millisecond, func() { allowing(to) })
						}), Mode: chain.Shadow})
					}
				}
				v := judged(t, cfg, chain.Validating, webhooks...)
				if v.Response.Allowed != c.allowed || v.Panicked != c.broken {
					t.Errorf("%+v", v)
				}
				if diff := cmp.Diff(c.want, order); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// crashed is a ShadowObserver that panics.
type crashed struct{}

func (crashed) ObserveShadow(context.Context, *ShadowRecord) { panic("swordfish") }
