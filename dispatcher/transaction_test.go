// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// undoing is a Hook whose Undo is a function.
type undoing struct {
	*hook.Func
	undo func(context.Context, hook.Question)
}

func (u undoing) Undo(ctx context.Context, q hook.Question) { u.undo(ctx, q) }

// addUndoing adds a Hook of the transactional stage.
func (l *locals) addUndoing(name string, f decide, undo func(context.Context, hook.Question)) *chain.Entry {
	l.t.Helper()
	e := l.add(name, f, func(e *chain.Entry) { e.Stage = chain.StageTransactional })
	e.Hook = undoing{e.Hook.(*hook.Func), undo}
	return e
}

func (l *locals) dispatcher(change func(*dispatcher.Config)) *dispatcher.Dispatcher {
	l.t.Helper()
	cfg := dispatcher.Config{Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	d, err := dispatcher.New(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

// What depends on the delivery of an allow waits for it, and so does Wait. What it is
// said to be first counts; nobody's is as if delivered.
func TestDelivery(t *testing.T) {
	for name, c := range map[string]struct {
		quota  decide
		none   bool // there is no Delivery
		dryRun bool
		settle []bool
		open   bool
		undone int32
	}{
		"delivered":                      {allow, false, false, []bool{true}, true, 0},
		"lost":                           {allow, false, false, []bool{false}, true, 1},
		"lost, said twice":               {allow, false, false, []bool{false, false, true}, true, 1},
		"delivered, and then panicked":   {allow, false, false, []bool{true, false}, true, 0},
		"a denial does not wait":         {refuse, false, false, []bool{false, true}, false, 1},
		"a dry run does not wait":        {allow, false, true, []bool{true}, false, 1},
		"nobody says":                    {allow, true, false, nil, false, 0},
		"nobody says, a denial all same": {refuse, true, false, nil, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(l *locals) {
				var undone atomic.Int32
				l.addUndoing("quota", c.quota, func(context.Context, hook.Question) { undone.Add(1) })
				l.addUndoing("other", allow, func(context.Context, hook.Question) { undone.Add(1) })
				d := l.dispatcher(nil)
				var delivery dispatcher.Delivery
				req := dispatcher.Request{Delivery: &delivery}
				if c.none {
					req.Delivery = nil
				}
				l.dispatch(d, req, c.dryRun)
				if held := d.Held() > 0; delivery.IsOpen() != c.open || c.open && !held {
					t.Errorf("open is %v, the review is held: %v", delivery.IsOpen(), held)
				}
				waited := make(chan struct{})
				go func() {
					d.Wait()
					close(waited)
				}()
				synctest.Wait()
				select {
				case <-waited:
					if c.open {
						t.Error("Wait does not wait for the delivery")
					}
				default:
					if !c.open {
						t.Error("Wait waits")
					}
				}
				for _, delivered := range c.settle {
					delivery.Settle(delivered)
				}
				if <-waited; undone.Load() != 2*c.undone || delivery.IsOpen() || d.Held() != 0 {
					t.Errorf("undone %d of two, open is %v, %d bytes are held", undone.Load(), delivery.IsOpen(), d.Held())
				}
			})
		})
	}
}

// broken is a ShadowObserver that panics.
type broken struct{}

func (broken) ObserveShadow(context.Context, *dispatcher.ShadowRecord) { panic("swordfish") }

// What was done is undone where the dispatcher itself panics behind it, which denies.
func TestPanicIsUndone(t *testing.T) {
	play(t, func(l *locals) {
		var undone atomic.Int32
		l.addUndoing("quota", allow, func(context.Context, hook.Question) { undone.Add(1) })
		l.add("shadow", allow, func(e *chain.Entry) { e.Mode, e.Pending = chain.Shadow, errors.New("not yet") })
		var delivery dispatcher.Delivery
		d := l.dispatcher(func(cfg *dispatcher.Config) { cfg.Shadows = []dispatcher.ShadowObserver{broken{}} })
		v := l.dispatch(d, dispatcher.Request{Delivery: &delivery}, false)
		delivery.Settle(true) // of the denial
		if d.Wait(); !v.Panicked || undone.Load() != 1 {
			t.Errorf("undone %d times, %+v", undone.Load(), v)
		}
	})
}

// An Undo that panics, or that does not end, is logged. Nobody waits for one that hangs
// longer than 3 s, and what it was asked about stays until it returns.
func TestUndoFails(t *testing.T) {
	for name, c := range map[string]struct {
		hangs time.Duration
		ends  func()
		takes time.Duration
		log   string
	}{
		"panics":        {0, func() { panic("swordfish") }, 0, "panic in undo"},
		"panics late":   {time.Hour, func() { panic("swordfish") }, 3 * time.Second, "undo has not ended in time"},
		"hangs":         {time.Hour, func() {}, 3 * time.Second, "undo has not ended in time"},
		"takes a while": {time.Second, func() {}, time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(l *locals) {
				read := make(chan string, 1)
				l.addUndoing("quota", refuse, func(ctx context.Context, q hook.Question) {
					if ctx.Err() != nil {
						t.Error("there is no time to begin with")
					}
					<-time.After(c.hangs)
					read <- fmt.Sprintf("%s %s %v", q.Review.Name, q.Object.Raw[:13], ctx.Err())
					c.ends()
				})
				var log bytes.Buffer
				d := l.dispatcher(func(cfg *dispatcher.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				l.dispatch(d, dispatcher.Request{}, false)
				begin := time.Now()
				d.Wait()
				if took := time.Since(begin); took != c.takes {
					t.Errorf("waited for %v, want %v", took, c.takes)
				}
				want := `web {"apiVersion" <nil>`
				if c.hangs > c.takes {
					want = `web {"apiVersion" ` + context.DeadlineExceeded.Error()
				}
				if got := <-read; got != want {
					t.Errorf("it had %q, want %q", got, want)
				}
				synctest.Wait()
				said := strings.Contains(log.String(), "level=ERROR")
				if said != (c.log != "") || !strings.Contains(log.String(), c.log) || said && !strings.Contains(log.String(), "webhook=quota") {
					t.Errorf("logged is %s", log.String())
				}
			})
		})
	}
}

// A cluster for which too many Undo hang has the calls shed that would add to them, by
// their failure policy. Other clusters, and other Hooks, are served, and so is the cluster
// once they have ended.
func TestHangingUndoIsBounded(t *testing.T) {
	play(t, func(l *locals) {
		release := make(chan struct{})
		verdict := codec.Response{}
		quota := l.addUndoing("quota", func(context.Context, hook.Question) (codec.Response, error) { return verdict, nil },
			func(context.Context, hook.Question) { <-release })
		d := l.dispatcher(func(cfg *dispatcher.Config) { cfg.Limits.Admissions = 8 })
		east, west := l.cluster(), l.cluster()
		west.Name = "west"
		hung := 0
		for ; hung < 100; hung++ {
			if v := l.dispatch(d, dispatcher.Request{Cluster: east}, false); v.Outcomes[0].Cause == hook.Shed {
				break
			}
		}
		if hung != 8 { // half of twice as many as admissions
			t.Errorf("%d hang", hung)
		}
		verdict = codec.Response{Allowed: true}
		if v := l.dispatch(d, dispatcher.Request{Cluster: west}, false); !v.Response.Allowed {
			t.Errorf("west: %+v", v.Response)
		}
		quota.FailurePolicy = chain.Ignore
		if v := l.dispatch(d, dispatcher.Request{Cluster: east}, false); !v.Response.Allowed || v.Outcomes[0].Result != dispatcher.FailedOpen {
			t.Errorf("Ignore: %+v", v)
		}
		l.list = nil
		l.add("plain", allow, func(e *chain.Entry) { e.Stage = chain.StageTransactional })
		if v := l.dispatch(d, dispatcher.Request{Cluster: l.cluster()}, false); !v.Response.Allowed {
			t.Errorf("another Hook: %+v", v.Response)
		}
		close(release)
		d.Wait()
		synctest.Wait()
		for range 100 { // nothing is used up
			if v := l.dispatch(d, dispatcher.Request{Cluster: east}, false); v.FailedOpen() {
				t.Fatalf("after that: %+v", v)
			}
		}
	})
}
