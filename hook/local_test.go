// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told waits for an answer, and fails if there is a second one.
type told chan error

func (r told) Answered(_ uint64, _ codec.Response, err error) {
	select {
	case r <- err:
	default:
		panic("told twice")
	}
}

// view returns the View of a review of a cluster, which the caller releases.
func view(cluster string) *hook.View {
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	return hook.NewView(hook.Source{Review: r, Cluster: cluster})
}

func ask(t *testing.T, h hook.Hook, cluster string, timeout time.Duration) told {
	t.Helper()
	v, to := view(cluster), make(told, 1)
	defer v.Release()
	h.Ask(t.Context(), hook.Question{View: v, Deadline: time.Now().Add(timeout)}, hook.NewReceiver(to, 0))
	return to
}

// Errors that say more are passed on as they are, all others say that there is no
// answer.
func TestLocalErrors(t *testing.T) {
	refusal := &hook.Refusal{Cause: hook.MatchError, Code: 403, Err: errors.New("no")}
	call := &hook.CallError{Cause: hook.Unreachable, Err: errors.New("away")}
	for given, want := range map[error]hook.Cause{refusal: "", call: hook.Unreachable, fmt.Errorf("it is %w", call): hook.Unreachable, errors.New("?"): hook.BadAnswer} {
		f := hook.Local(func(context.Context, hook.Question) (codec.Response, error) {
			return codec.Response{Allowed: true}, given
		})
		err := <-ask(t, f, "east", time.Minute)
		var unusable *hook.CallError
		if errors.As(err, &unusable) != (want != "") || want != "" && unusable.Cause != want || want == "" && !errors.Is(err, refusal) {
			t.Errorf("%v is %T %v", given, err, err)
		}
		f.Close()
	}
}

// Without time nothing is called.
func TestLocalWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes by itself
		f := hook.Local(func(context.Context, hook.Question) (codec.Response, error) { panic("called") })
		defer f.Close()
		for _, left := range []time.Duration{0, -1} {
			var call *hook.CallError
			if err := <-ask(t, f, "east", left); !errors.As(err, &call) || call.Cause != hook.NoTimeLeft {
				t.Errorf("with %v left: %v", left, err)
			}
		}
	})
}

// heard is an Asker that waits for the answer, too.
type heard chan codec.Response

func (r heard) Answered(_ uint64, resp codec.Response, _ error) { r <- resp }

// A denial without a code is Forbidden; whatever else a function answers stays.
func TestLocalAnswers(t *testing.T) {
	for _, row := range []struct{ given, want codec.Response }{
		{codec.Response{}, codec.Response{Code: 403, Reason: "Forbidden"}},
		{codec.Response{Code: 422, Message: "no"}, codec.Response{Code: 422, Message: "no"}},
		{codec.Response{Allowed: true}, codec.Response{Allowed: true}},
		{codec.Response{Allowed: true, Warnings: []string{"soon"}}, codec.Response{Allowed: true, Warnings: []string{"soon"}}},
	} {
		f := hook.Local(func(context.Context, hook.Question) (codec.Response, error) { return row.given, nil })
		v, to := view("east"), make(heard, 1)
		f.Ask(t.Context(), hook.Question{View: v, Deadline: time.Now().Add(time.Minute)}, hook.NewReceiver(to, 0))
		if got := <-to; !reflect.DeepEqual(got, row.want) {
			t.Errorf("%+v is %+v, want %+v", row.given, got, row.want)
		}
		v.Release()
		f.Close()
	}
}

// A panic of a function is a CallError with the stack, which does not quote what it was
// about. What the call held is given back, as after any other.
func TestLocalPanics(t *testing.T) {
	const secret = "swordfish"
	f := hook.Local(func(_ context.Context, q hook.Question) (codec.Response, error) { panic(secret) })
	defer f.Close()
	for range 2 * 256 { // more than may be under way
		freed := false
		v, to := podView(t, nil, func() { freed = true }), make(told, 1)
		f.Ask(t.Context(), hook.Question{View: v, Deadline: time.Now().Add(time.Minute)}, hook.NewReceiver(to, 0))
		v.Release()
		err := <-to
		call, ok := errors.AsType[*hook.CallError](err)
		if !ok || call.Cause != hook.Panic || !strings.Contains(string(call.Stack), "TestLocalPanics") || strings.Contains(err.Error(), secret) {
			t.Fatalf("%v\n%s", err, call.Stack)
		}
		if !freed {
			t.Fatal("the review is held when the answer is there")
		}
	}
}

// Of a function that hangs one cluster has half of the calls that may be under way, and
// another one finds some. Those that have timed out are still under way.
func TestLocalIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := hook.Local(func(context.Context, hook.Question) (codec.Response, error) {
			<-release
			return codec.Response{Allowed: true}, nil
		})
		var all []told
		causes := func(cluster string) map[hook.Cause]int {
			before := len(all)
			for range 300 {
				all = append(all, ask(t, f, cluster, time.Second))
			}
			got := map[hook.Cause]int{}
			for _, to := range all[before:] {
				var call *hook.CallError
				if err := <-to; errors.As(err, &call) {
					got[call.Cause]++
				}
			}
			return got
		}
		if got := fmt.Sprint(causes("east"), causes("west"), causes("east")); got != "map[Shed:172 Timeout:128] map[Shed:236 Timeout:64] map[Shed:300]" {
			t.Error(got)
		}
		close(release)
		synctest.Wait()
		for _, to := range all {
			if len(to) > 0 {
				t.Fatal("somebody is told twice")
			}
		}
		if err := <-ask(t, f, "east", time.Second); err != nil {
			t.Error(err)
		}
		f.Close()
	})
}

// Goroutines are kept for the next calls.
func TestLocalKeepsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := map[string]bool{} // by the head of the stack, which has the goroutine's number
		f := hook.Local(func(context.Context, hook.Question) (codec.Response, error) {
			stack := make([]byte, 64)
			head, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), " [")
			ran[head] = true
			return codec.Response{Allowed: true}, nil
		})
		for range 100 {
			<-ask(t, f, "east", time.Second)
			synctest.Wait()
		}
		if len(ran) != 1 {
			t.Errorf("it ran on %d goroutines", len(ran))
		}
		f.Close()
	})
}

// A View that is used after its last release, or released twice, is a bug that shows.
func TestViewIsCounted(t *testing.T) {
	for name, misuse := range map[string]func(*hook.View){
		"retained":       func(v *hook.View) { v.Retain() },
		"released twice": (*hook.View).Release,
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nothing is said")
				}
			}()
			v := view("east")
			v.Release()
			misuse(v)
		})
	}
}

// A function that ends its goroutine has given no answer, and what it held is given back.
func TestLocalEndsItsGoroutine(t *testing.T) {
	f := hook.Local(func(context.Context, hook.Question) (codec.Response, error) {
		runtime.Goexit()
		return codec.Response{Allowed: true}, nil
	})
	defer f.Close()
	for range 2 * 256 { // more than may be under way
		err := <-ask(t, f, "east", time.Minute)
		if call, ok := errors.AsType[*hook.CallError](err); !ok || call.Cause != hook.BadAnswer {
			t.Fatalf("%v", err)
		}
	}
}
