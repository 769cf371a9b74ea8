// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// careless is a Hook that answers more than once, and keeps what it was given to answer
// with for ever.
type careless struct {
	mu   sync.Mutex
	kept []hook.Receiver
}

func (c *careless) keep(to hook.Receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, to)
}

// again answers every Question that it was ever asked.
func (c *careless) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, to := range c.kept {
		to.Receive(codec.Response{Allowed: true}, nil)
	}
}

var allowed = codec.Response{Allowed: true}

// A Hook that answers when its Question is long over, or over and over, decides no
// other admission, whoever's memory that has: not before the answer that counts, and
// not after it.
func TestLateAnswersDecideNothing(t *testing.T) {
	for name, answer := range map[string]func(hook.Receiver){
		"at once":                     func(to hook.Receiver) { to.Receive(allowed, nil) },
		"twice":                       func(to hook.Receiver) { to.Receive(allowed, nil); to.Receive(allowed, nil) },
		"and panics":                  func(to hook.Receiver) { to.Receive(allowed, nil); panic("swordfish") },
		"not in time":                 func(hook.Receiver) {},
		"on another goroutine, twice": func(to hook.Receiver) { go to.Receive(allowed, nil); go to.Receive(allowed, nil) },
	} {
		for _, mode := range []chain.Mode{chain.Enforce, chain.Shadow} {
			for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
				t.Run(name+", "+mode.String()+", "+phase.String(), func(t *testing.T) { lateAnswers(t, answer, mode, phase) })
			}
		}
	}
}

func lateAnswers(t *testing.T, answer func(hook.Receiver), mode chain.Mode, phase chain.Phase) {
	d, err := New(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := match.Compile(match.Spec{Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster := func(h hook.Hook, mode chain.Mode) *chain.Cluster {
		e := &chain.Entry{ID: hook.ID{Name: "a"}, Hook: h, Matcher: matcher, Timeout: time.Millisecond, Mode: mode}
		c := (&chain.Chain{}).With([]*chain.Entry{e})
		return &chain.Cluster{Name: "east", Validating: c, Mutating: c}
	}
	admit := func(c *chain.Cluster, within time.Duration) Verdict {
		req := request()
		req.Cluster, req.Phase, req.Deadline = c, phase, time.Now().Add(within)
		req.Review.Operation, req.Review.Resource.Resource = codec.Create, []byte("pods")
		defer codec.ReleaseReview(req.Review)
		var v Verdict
		d.Dispatch(t.Context(), req, &v)
		return v
	}
	sloppy := &careless{}
	first := cluster(asking(func(_ hook.Question, to hook.Receiver) {
		sloppy.keep(to)
		answer(to)
	}), mode)
	strict := cluster(asking(func(_ hook.Question, to hook.Receiver) {
		sloppy.again()
		to.Receive(codec.Response{Code: 403}, nil)
		sloppy.again()
	}), chain.Enforce)
	var storm sync.WaitGroup
	for range 20 {
		admit(first, 20*time.Millisecond)
		storm.Go(sloppy.again)
		if v := admit(strict, time.Minute); v.Response.Allowed || len(v.Outcomes) != 1 || v.Outcomes[0].Result != Denied {
			t.Fatalf("%+v", v)
		}
	}
	storm.Wait()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Wait()
	}()
	for { // a Hook in Shadow may still be asked
		sloppy.again()
		select {
		case <-ended:
			return
		default:
			runtime.Gosched()
		}
	}
}
