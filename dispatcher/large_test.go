// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

const largeCluster = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]s}
spec: {authentication: {certificate: {commonNames: [%[1]s]}}}
`

const largeWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: w%[1]d}
webhooks:
- name: w%[1]d.example.com
  clientConfig: {url: "https://webhook.example.com/w%[1]d"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]
  admissionReviewVersions: [v1]
  sideEffects: None
  reinvocationPolicy: IfNeeded
  timeoutSeconds: 10
  failurePolicy: %[2]s
`

// zeros is the review of a Pod with an array of so many bytes in it.
func zeros(size int) []byte {
	return fmt.Appendf(nil, podReview, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","labels":{}},"spec":{"zeros":[`+strings.Repeat("0,", size/2)+`0]}}`)
}

// labeller is webhooks that set a label each, and at once.
type labeller struct {
	wait    func(call *webhook.Call) // before the answer; none
	ignored string                   // the webhook whose failurePolicy is Ignore
}

func (l labeller) Start(_ context.Context, call *webhook.Call, to webhook.Receiver) {
	name, own := path.Base(call.Target.URL()), *call
	go func() {
		if l.wait != nil {
			l.wait(&own)
		}
		to.Receive(codec.Response{Allowed: true, Patch: fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels/%s","value":"yes"}]`, name)}, nil)
	}()
}

// largeWorld is a dispatcher, and clusters that have so many mutating webhooks.
func largeWorld(t testing.TB, caller labeller, webhooks int, clusters ...string) (*dispatcher.Dispatcher, *registry.Snapshot) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range clusters {
		write(c, fmt.Sprintf(largeCluster, c))
	}
	for i := range webhooks {
		name, policy := fmt.Sprintf("w%d", i), "Fail"
		if name == caller.ignored {
			policy = "Ignore"
		}
		write(name, fmt.Sprintf(largeWebhook, i, policy))
	}
	r := registry.New(registry.Settings{Directories: []string{dir}, Logger: slog.New(slog.DiscardHandler)})
	if problems := r.Load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := dispatcher.New(dispatcher.Config{Caller: caller, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d, r.Snapshot()
}

// admit decodes and dispatches a review as the server does.
func admit(t testing.TB, d *dispatcher.Dispatcher, s *registry.Snapshot, cluster string, text []byte, timeout time.Duration) dispatcher.Verdict {
	t.Helper()
	deadline := time.Now().Add(timeout)
	review := codec.AcquireReview()
	defer codec.ReleaseReview(review)
	body := codec.NewBody(bytes.Clone(text), nil)
	defer body.Release()
	if err := review.Decode(body); err != nil {
		t.Fatal(err)
	}
	return d.Dispatch(context.Background(), dispatcher.Request{
		Review: review, Cluster: s.Clusters[cluster], Phase: registry.Mutating, Snapshot: "snapshot", Deadline: deadline,
	})
}

// A webhook of whose call nothing comes, and not even its end, holds nobody up: the
// answer goes out at the deadline.
func TestCallThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := labeller{ignored: "w1", wait: func(call *webhook.Call) {
			if path.Base(call.Target.URL()) == "w1" {
				<-time.After(time.Until(call.Deadline) + time.Minute)
			}
		}}
		d, s := largeWorld(t, hung, 4, "east")
		begin := time.Now()
		v := admit(t, d, s, "east", zeros(10), 3*time.Second)
		if elapsed := time.Since(begin); elapsed != 3*time.Second {
			t.Errorf("answered after %v", elapsed)
		}
		if v.Response.Allowed || v.Outcomes[1].Cause != webhook.Timeout || v.Outcomes[2].Cause != webhook.NoTimeLeft {
			t.Errorf("%s", v.Response.Message)
		}
		d.Wait()
		if held := d.Held(); held != 0 {
			t.Errorf("%d bytes are still counted", held)
		}
	})
}

// Work on a large object takes its turn, until the deadline; a small one does not
// wait for it, whatever another cluster does. A turn that does not come is a call
// that was shed, for that webhook's failure policy.
func TestTurnsOfLargeObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := largeWorld(t, labeller{}, 2, "east", "west")
		release := d.Occupy("east", 20)
		begin := time.Now()
		if v := admit(t, d, s, "west", zeros(10), time.Second); !v.Response.Allowed || time.Since(begin) != 0 {
			t.Errorf("a small object waits %v: %s", time.Since(begin), v.Response.Message)
		}
		v := admit(t, d, s, "west", zeros(100_000), time.Second)
		if elapsed := time.Since(begin); elapsed > time.Second || elapsed < 900*time.Millisecond {
			t.Errorf("answered after %v", elapsed)
		}
		if v.Response.Allowed || v.Outcomes[0].Cause != webhook.Shed || !strings.Contains(v.Response.Message, "large objects") {
			t.Errorf("%s", v.Response.Message)
		}
		done := make(chan dispatcher.Verdict)
		go func() { done <- admit(t, d, s, "west", zeros(100_000), time.Second) }()
		synctest.Wait() // it waits behind twenty of the other cluster
		release()
		if v := <-done; !v.Response.Allowed {
			t.Error(v.Response.Message)
		}
	})
}

// Webhooks of which the last answers just before the deadline, with objects as large
// as there are: the answer goes out before the caller has given up, for which it
// has at least 100 ms more. It takes minutes, and a machine with nothing else to do.
func TestLargeObjectsInTime(t *testing.T) {
	if os.Getenv("FULL") == "" {
		t.Skip("FULL is not set")
	}
	const admissions, atOnce = 1000, 4 // of which one waits for webhooks most of the time
	slow := labeller{wait: func(call *webhook.Call) {
		if path.Base(call.Target.URL()) == "w3" {
			<-time.After(time.Until(call.Deadline) - 100*time.Millisecond)
		}
	}}
	d, s := largeWorld(t, slow, 4, "east")
	text := zeros(2_900_000)
	var late atomic.Int32
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for range admissions / atOnce {
				begin := time.Now()
				admit(t, d, s, "east", text, time.Second)
				if time.Since(begin) > time.Second+100*time.Millisecond {
					late.Add(1)
				}
			}
		})
	}
	wg.Wait()
	d.Wait()
	t.Logf("%d of %d answers were late", late.Load(), admissions)
	if late.Load() > 0 {
		t.Errorf("%d of %d answers were late", late.Load(), admissions)
	}
	if held := d.Held(); held != 0 {
		t.Errorf("%d bytes are still counted", held)
	}
}

// BenchmarkLargeObject is what a Pod of 2.9 MB costs, by the webhooks that patch it.
func BenchmarkLargeObject(b *testing.B) {
	for _, webhooks := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("webhooks=%d", webhooks), func(b *testing.B) {
			d, s := largeWorld(b, labeller{}, webhooks, "east")
			text := zeros(2_900_000)
			b.ReportAllocs()
			begin := cpuTime()
			for b.Loop() {
				if v := admit(b, d, s, "east", text, time.Minute); !v.Response.Allowed {
					b.Fatal(v.Response.Message)
				}
			}
			b.ReportMetric(float64((cpuTime()-begin).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
