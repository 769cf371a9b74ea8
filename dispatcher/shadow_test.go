// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/transport"
)

const shadowBinding = `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: shadow}
spec: {webhooks: ["selective/*"], mode: Shadow}
`

// shadowed is what a ShadowObserver is told.
type shadowed chan string

func (s shadowed) ObserveShadow(_ context.Context, r *dispatcher.ShadowRecord) {
	text := r.Outcome.Result.String()
	if r.Dropped {
		text = "dropped"
	}
	s <- text
}

// list is what was told so far.
func (s shadowed) list() (all []string) {
	for len(s) > 0 {
		all = append(all, <-s)
	}
	return all
}

// A Shadow webhook whose selector needs a namespace to be looked up holds nobody up and
// takes no slot: the lookup goes on without the admission, whatever comes of it.
func TestShadowLookupHoldsNobodyUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		tier  string
		err   error
		hangs bool
		want  []string
		calls int
	}{
		{name: "wanted", want: []string{"allowed"}, calls: 1},
		{name: "of another tier", tier: "lead"},
		{name: "not found", err: match.ErrNoNamespace, want: []string{"refused"}},
		{name: "failed", err: errors.New("no"), want: []string{"refused"}},
		{name: "no labels", err: match.ErrNotLookedUp, want: []string{"refused"}},
		{name: "no answer", hangs: true, want: []string{"refused"}},
	} {
		for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
			t.Run(c.name+" "+phase.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					calls := 0
					caller := calling(func(call transport.Call, to hook.Receiver) {
						calls++
						answer(call, to, codec.Response{Allowed: true}, nil)
					})
					_, s := newWorld(t, caller, overload.Limits{}, fmt.Sprintf(selectiveCluster, "east"),
						fmt.Sprintf(selectiveWebhook, map[chain.Phase]string{chain.Validating: "Validating", chain.Mutating: "Mutating"}[phase], "Fail"), shadowBinding)
					source := &api{answer: make(chan error), tier: c.tier}
					s.Clusters["east"].Namespaces = source
					told := make(shadowed, 9)
					d, err := dispatcher.New(dispatcher.Config{Shadows: []dispatcher.ShadowObserver{told}, Logger: slog.New(slog.DiscardHandler)})
					if err != nil {
						t.Fatal(err)
					}
					begin := time.Now()
					v := admitPhase(t, phase, d, s, "east", selectedPod, 10*time.Second)
					if waited := time.Since(begin); waited != 0 || !v.Response.Allowed || len(v.Outcomes)+len(v.Response.Warnings) != 0 {
						t.Errorf("%+v after %v", v, waited)
					}
					synctest.Wait()
					if source.times != 1 || len(d.InFlight()) != 0 || len(told) != 0 {
						t.Errorf("%d lookups, in flight %v, told %q", source.times, d.InFlight(), told.list())
					}
					if !c.hangs {
						source.answer <- c.err
					}
					d.Wait()
					if diff := cmp.Diff(c.want, told.list()); diff != "" || calls != c.calls || d.Held() != 0 {
						t.Errorf("%d calls, %d bytes are held; told (-want +got):\n%s", calls, d.Held(), diff)
					}
				})
			})
		}
	}
}

// Lookups for Shadow webhooks take part in their bound: beyond it they are dropped.
func TestShadowLookupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, source := selectiveWorld(t, chain.Validating, "Fail", overload.Limits{})
		for _, w := range s.Clusters["east"].Validating.Webhooks {
			w.Mode = chain.Shadow
		}
		told := make(shadowed, 9)
		d, err := dispatcher.New(dispatcher.Config{
			Limits: overload.Limits{ShadowCalls: 2}, Shadows: []dispatcher.ShadowObserver{told}, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second)
			synctest.Wait()
		}
		if diff := cmp.Diff([]string{"dropped"}, told.list()); diff != "" || source.times != 1 {
			t.Errorf("%d lookups; told (-want +got):\n%s", source.times, diff)
		}
		source.answer <- nil
		d.Wait()
		if diff := cmp.Diff([]string{"allowed"}, told.list()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

// The form in which a Shadow webhook is sent a large object waits for its turn without
// the admission.
func TestShadowFormHoldsNobodyUp(t *testing.T) {
	const compressed = `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: shadow}
spec: {webhooks: ["w0/*"], mode: Shadow, compression: Gzip}
`
	synctest.Test(t, func(t *testing.T) {
		d, s := newWorld(t, labeller{}, overload.Limits{}, fmt.Sprintf(largeCluster, "east"), fmt.Sprintf(largeWebhook, 0, "Fail"), compressed)
		release := d.Occupy(t, "west", 0)
		begin := time.Now()
		if v := admit(t, d, s, "east", zeros(100_000), 10*time.Second); !v.Response.Allowed || time.Since(begin) != 0 {
			t.Errorf("allowed %v after %v", v.Response.Allowed, time.Since(begin))
		}
		release()
		d.Wait()
	})
}

// A Shadow webhook that is matched later is matched against the object as it was when its
// turn came.
func TestShadowLookupSeesTheMutatedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		caller := calling(func(call transport.Call, to hook.Receiver) {
			calls[path.Base(call.Target.URL())]++
			answer(call, to, codec.Response{Allowed: true, Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"policy":"yes"}}]`)}, nil)
		})
		d, s := newWorld(t, caller, overload.Limits{}, fmt.Sprintf(selectiveCluster, "east"),
			strings.ReplaceAll(fmt.Sprintf(largeWebhook, 0, "Fail"), "name: w0", "name: before"), fmt.Sprintf(selectiveWebhook, "Mutating", "Fail"), shadowBinding)
		source := &api{answer: make(chan error)}
		s.Clusters["east"].Namespaces = source
		if v := admit(t, d, s, "east", otherPod, 10*time.Second); !v.Response.Allowed || calls["w0"] != 1 {
			t.Errorf("%+v, calls %v", v.Response, calls)
		}
		source.answer <- nil
		if d.Wait(); calls["selective"] != 1 {
			t.Errorf("calls %v", calls)
		}
	})
}

// A panic of what is done about a Shadow webhook is logged, and is nobody else's: the
// admission is decided, what was held is given back, and the next one is told of.
func TestShadowPanicIsContained(t *testing.T) {
	play(t, func(l *locals) {
		var log bytes.Buffer
		told := make(shadowed, 9)
		l.add("f", refuse, func(e *chain.Entry) { e.Mode = chain.Shadow })
		d := l.dispatcher(func(cfg *dispatcher.Config) {
			cfg.Limits.ShadowCalls = 2 // of one cluster: one
			cfg.Shadows = []dispatcher.ShadowObserver{told, broken{}}
			cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		})
		for range 3 {
			v := l.dispatch(d, dispatcher.Request{}, false)
			if d.Wait(); !v.Response.Allowed || v.Panicked || d.Held() != 0 {
				t.Errorf("%+v, %d bytes are held", v, d.Held())
			}
		}
		if diff := cmp.Diff([]string{"denied", "denied", "denied"}, told.list()); diff != "" {
			t.Errorf("told (-want +got)\n%s", diff)
		}
		if n := strings.Count(log.String(), `"msg":"panic while deciding an admission","panic":"a value of type string","stack":"goroutine `); n != 3 {
			t.Errorf("%d panics are logged: %s", n, log.String())
		}
	})
}

// What a Shadow Hook does that is matched later is its own affair: the admission's
// Delivery does not wait for it, and it is undone after a dry run.
func TestShadowLookupOfAnUndoer(t *testing.T) {
	for dryRun, want := range map[bool]int32{false: 0, true: 1} {
		play(t, func(l *locals) {
			var asked, undone atomic.Int32
			e := l.addUndoing("quota", func(context.Context, hook.Question) (codec.Response, error) {
				asked.Add(1)
				return codec.Response{Allowed: true}, nil
			}, func(context.Context, hook.Question) { undone.Add(1) })
			e.Mode, e.Spec.NamespaceSelector = chain.Shadow, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
			var err error
			if e.Matcher, err = match.Compile(e.Spec, l.cel); err != nil {
				t.Fatal(err)
			}
			source, cluster := &api{answer: make(chan error)}, l.cluster()
			cluster.Namespaces = source
			d := l.dispatcher(nil)
			var delivery dispatcher.Delivery
			v := l.dispatch(d, dispatcher.Request{Cluster: cluster, Delivery: &delivery}, dryRun)
			source.answer <- nil
			d.Wait()
			if !v.Response.Allowed || delivery.IsOpen() {
				t.Errorf("%+v, the delivery is open: %v", v.Response, delivery.IsOpen())
			}
			if asked.Load() != 1 || undone.Load() != want || d.Held() != 0 {
				t.Errorf("dry run %v: asked %d times, undone %d times, %d bytes are held", dryRun, asked.Load(), undone.Load(), d.Held())
			}
		})
	}
}
