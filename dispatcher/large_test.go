// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
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
	wait    func(call transport.Call) // before the answer; none
	ignored string                    // the webhook whose failurePolicy is Ignore
}

func (l labeller) Start(_ context.Context, call transport.Call, to hook.Receiver) hook.Outstanding {
	call.Message.Retain()
	name, own := path.Base(call.Target.URL()), call
	go func() {
		if l.wait != nil {
			l.wait(own)
		}
		answer(call, to, codec.Response{Allowed: true, Patch: fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels/%s","value":"yes"}]`, name)}, nil)
	}()
	return nil
}

// largeWorld is a dispatcher, and clusters that have so many mutating webhooks.
func largeWorld(t testing.TB, caller labeller, webhooks int, clusters ...string) (*dispatcher.Dispatcher, *registry.Snapshot) {
	t.Helper()
	var manifests []string
	for _, c := range clusters {
		manifests = append(manifests, fmt.Sprintf(largeCluster, c))
	}
	for i := range webhooks {
		name, policy := fmt.Sprintf("w%d", i), "Fail"
		if name == caller.ignored {
			policy = "Ignore"
		}
		manifests = append(manifests, fmt.Sprintf(largeWebhook, i, policy))
	}
	return newWorld(t, caller, overload.Limits{}, manifests...)
}

// newWorld is a dispatcher, and what the manifests are compiled to.
func newWorld(t testing.TB, caller webhook.Client, limits overload.Limits, manifests ...string) (*dispatcher.Dispatcher, *registry.Snapshot) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(strings.Join(manifests, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	r := registry.New(registry.Settings{Sources: manifest.Directories(dir), Compile: compile.Options{Client: caller}, Logger: slog.New(slog.DiscardHandler)})
	if problems := r.Load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := dispatcher.New(dispatcher.Config{Limits: limits, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d, r.Snapshot()
}

// admit decodes and dispatches a review as the server does.
func admit(t testing.TB, d *dispatcher.Dispatcher, s *registry.Snapshot, cluster string, text []byte, timeout time.Duration) dispatcher.Verdict {
	t.Helper()
	return admitPhase(t, chain.Mutating, d, s, cluster, text, timeout)
}

func admitPhase(t testing.TB, phase chain.Phase, d *dispatcher.Dispatcher, s *registry.Snapshot, cluster string, text []byte, timeout time.Duration) dispatcher.Verdict {
	t.Helper()
	deadline := time.Now().Add(timeout)
	review := codec.AcquireReview()
	defer codec.ReleaseReview(review)
	body := codec.NewBody(bytes.Clone(text), nil)
	defer body.Release()
	if err := review.Decode(body); err != nil {
		t.Fatal(err)
	}
	var v dispatcher.Verdict
	d.Dispatch(context.Background(), dispatcher.Request{
		Review: review, Cluster: s.Clusters[cluster], Phase: phase, Snapshot: "snapshot", Deadline: deadline,
	}, &v)
	return v
}

// A webhook of whose call nothing comes, and not even its end, holds nobody up: the
// answer goes out at the deadline.
func TestCallThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := labeller{ignored: "w1", wait: func(call transport.Call) {
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
		if v.Response.Allowed || v.Outcomes[1].Cause != hook.Timeout || v.Outcomes[2].Cause != hook.NoTimeLeft {
			t.Errorf("%s", v.Response.Message)
		}
		d.Wait()
		if held := d.Held(); held != 0 {
			t.Errorf("%d bytes are still counted", held)
		}
	})
}

// recorder is webhooks that hang to the end of their call, or deny at once, by name,
// and remembers the calls.
type recorder struct {
	mu    sync.Mutex // a Shadow call is made on its own
	calls map[string]transport.Call
	vain  int // how many were over when they began
}

func (r *recorder) Start(_ context.Context, call transport.Call, to hook.Receiver) hook.Outstanding {
	call.Message.Retain()
	name, own := path.Base(call.Target.URL()), call
	r.mu.Lock()
	if r.calls[name] = own; own.Over.Load() {
		r.vain++
	}
	r.mu.Unlock()
	go func() {
		if strings.HasPrefix(name, "hang") {
			<-time.After(time.Until(own.Deadline))
			answer(call, to, codec.Response{}, &hook.CallError{Cause: hook.Timeout, Err: errors.New("it hangs")})
			return
		}
		answer(call, to, codec.Response{Code: 403}, nil)
	}()
	return nil
}

// Calls that are under way when the answer goes out know that nobody needs them any
// more; a Shadow call, of which nobody ever needed the answer, is made to its end. Only
// a webhook that would deny by failing is waited for while its circuit is open.
func TestCallsKnowThatTheyAreOver(t *testing.T) {
	webhooks := func(kind, names string) string {
		text := "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "WebhookConfiguration\nmetadata: {name: " + strings.ToLower(kind) + "}\nwebhooks:\n"
		for name := range strings.FieldsSeq(names) {
			policy := "Fail"
			if strings.HasSuffix(name, "-ignored") {
				policy = "Ignore"
			}
			text += fmt.Sprintf(`- {name: %[1]s.example.com, clientConfig: {url: "https://webhook.example.com/%[1]s"}, sideEffects: None, admissionReviewVersions: [v1],
  rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}], timeoutSeconds: 10, failurePolicy: %[2]s}
`, name, policy)
		}
		return text
	}
	const modes = `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: shadow}
spec: {webhooks: ["*/hang-shadow.*"], mode: Shadow}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: warn}
spec: {webhooks: ["*/hang-warn.*"], mode: Warn}
`
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{calls: map[string]transport.Call{}}
		d, s := newWorld(t, r, overload.Limits{}, fmt.Sprintf(largeCluster, "east"), webhooks("Validating", "deny hang hang-ignored hang-warn hang-shadow"), modes)
		if v := admitPhase(t, chain.Validating, d, s, "east", zeros(10), 3*time.Second); v.Response.Allowed {
			t.Error("allowed")
		}
		synctest.Wait()
		over := map[string]bool{"hang": true, "hang-ignored": true, "hang-warn": true, "hang-shadow": false}
		wait := map[string]bool{"hang": true, "deny": true}
		for name, call := range r.calls {
			if is, under := over[name]; under && call.Over.Load() != is {
				t.Errorf("%s: over is %v", name, call.Over.Load())
			}
			if call.Wait != wait[name] {
				t.Errorf("%s: wait is %v", name, call.Wait)
			}
		}
		d.Wait()
		admitPhase(t, chain.Validating, d, s, "east", zeros(10), 3*time.Second)
		d.Wait()
		if len(r.calls) != 5 || r.vain > 0 {
			t.Errorf("%d webhooks are called, and %d calls are over when they begin", len(r.calls), r.vain)
		}
	})
}

// What the caller is answered is one patch. Applied to the object that it sent, it
// gives what the last webhook was sent, whatever patches of others did not apply, were
// refused or were left out.
func TestPatchGivesWhatTheLastWebhookSaw(t *testing.T) {
	const webhooks = 5
	operations := []string{
		`{"op":"add","path":"/metadata/labels/a","value":"1"}`,
		`{"op":"add","path":"/metadata/labels/b","value":"2"}`,
		`{"op":"remove","path":"/metadata/labels/a"}`, // perhaps there is none
		`{"op":"move","from":"/metadata/labels/b","path":"/metadata/labels/c"}`,
		`{"op":"copy","from":"/metadata/labels","path":"/spec/copy"}`,
		`{"op":"replace","path":"/spec/copy","value":{"<":[1.0,null]}}`,
		`{"op":"test","path":"/metadata/labels/a","value":"1"}`,
		`{"op":"add","path":"/spec/zeros/0","value":7}`, // has every element kept
		`{"op":"remove","path":"/spec/zeros/1"}`,
		`{"op":"replace","path":"/metadata/namespace","value":"another"}`, // refused
		`{"op":"add","path":"/metadata/labels/d","value":4}`,              // refused
	}
	var patches [webhooks]string
	var last []byte
	caller := calling(func(call transport.Call, to hook.Receiver) {
		n := int(call.Target.URL()[len(call.Target.URL())-1] - '0')
		var sent struct {
			Request struct{ Object json.RawMessage }
		}
		if err := json.Unmarshal(call.Message.(*webhook.Message).Body.Bytes(), &sent); err != nil {
			t.Error(err)
		}
		last = bytes.Clone(sent.Request.Object)
		resp := codec.Response{Allowed: true}
		if patches[n] != "" {
			resp.Patch = []byte(patches[n])
		}
		answer(call, to, resp, nil)
	})
	manifests := []string{
		fmt.Sprintf(largeCluster, "east"),
		"apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: warn}\nspec: {webhooks: [\"*/*\"], mode: Warn}",
	}
	for i := range webhooks {
		manifests = append(manifests, strings.Replace(fmt.Sprintf(largeWebhook, i, "Fail"), "reinvocationPolicy: IfNeeded", "reinvocationPolicy: Never", 1))
	}
	d, s := newWorld(t, caller, overload.Limits{}, manifests...)
	rapid.Check(t, func(rt *rapid.T) {
		for i := range webhooks - 1 { // the last one looks only
			drawn := rapid.SliceOfN(rapid.SampledFrom(operations), 0, 4).Draw(rt, "operations")
			patches[i] = "[" + strings.Join(drawn, ",") + "]"
		}
		text := zeros(rapid.SampledFrom([]int{10, 10, 10, 80_000}).Draw(rt, "size"))
		v := admit(t, d, s, "east", text, time.Minute)
		if !v.Response.Allowed {
			rt.Fatal(v.Response.Message)
		}
		var received struct {
			Request struct{ Object json.RawMessage }
		}
		if err := json.Unmarshal(text, &received); err != nil {
			rt.Fatal(err)
		}
		want := []byte(received.Request.Object)
		if v.Response.Patch != nil {
			patch, err := jsonpatch.DecodePatch(v.Response.Patch)
			if err != nil {
				rt.Fatal(err)
			}
			if want, err = patch.Apply(want); err != nil {
				rt.Fatalf("%s does not apply: %v", v.Response.Patch, err)
			}
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(last, &b) != nil || !reflect.DeepEqual(a, b) {
			rt.Fatalf("%s gives %.300s, the last webhook was sent %.300s", v.Response.Patch, want, last)
		}
	})
}

// answer ends a call, whose Message is retained, as the Client does after one attempt.
func answer(call transport.Call, to hook.Receiver, resp codec.Response, err error) {
	call.Message.Release()
	to.Receive(resp, err)
}

// calling is a Client made of a function.
type calling func(transport.Call, hook.Receiver)

func (c calling) Start(_ context.Context, call transport.Call, to hook.Receiver) hook.Outstanding {
	call.Message.Retain()
	c(call, to)
	return nil
}

// A cluster whose webhooks make objects large is shed itself when its share of bytes is
// used up, for each call with such an object, and no other cluster is.
func TestObjectsThatGrow(t *testing.T) {
	const limit, large, admissions = 1 << 20, 200 << 10, 8
	grow := fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels/large","value":"%s"}]`, strings.Repeat("x", large))
	caller := calling(func(call transport.Call, to hook.Receiver) {
		name, deadline, grows := path.Base(call.Target.URL()), call.Deadline, call.Cluster == "east"
		go func() {
			switch {
			case name == "w0" && grows:
				answer(call, to, codec.Response{Allowed: true, Patch: grow}, nil)
			case name == "w1" && grows: // holds what it was sent
				<-time.After(time.Until(deadline))
				answer(call, to, codec.Response{}, &hook.CallError{Cause: hook.Timeout, Err: errors.New("late")})
			default:
				answer(call, to, codec.Response{Allowed: true}, nil)
			}
		}()
	})
	synctest.Test(t, func(t *testing.T) {
		manifests := []string{fmt.Sprintf(largeCluster, "east"), fmt.Sprintf(largeCluster, "west")}
		for i := range 3 {
			manifests = append(manifests, strings.Replace(fmt.Sprintf(largeWebhook, i, "Ignore"), "reinvocationPolicy: IfNeeded", "reinvocationPolicy: Never", 1))
		}
		d, s := newWorld(t, caller, overload.Limits{Bytes: limit}, manifests...)
		verdicts := make(chan dispatcher.Verdict, admissions)
		for range admissions {
			go func() { verdicts <- admit(t, d, s, "east", zeros(10), 3*time.Second) }()
		}
		synctest.Wait()
		if held := d.Held(); held > limit/2+large {
			t.Errorf("%d bytes are held for one cluster", held)
		}
		for _, o := range admit(t, d, s, "west", zeros(1000), 3*time.Second).Outcomes {
			if o.Result != dispatcher.Allowed {
				t.Errorf("west: %s is %s, %v", o.Webhook.Name, o.Result, o.Err)
			}
		}
		shed := 0
		for range admissions {
			v := <-verdicts
			if one, two := v.Outcomes[1].Cause, v.Outcomes[2].Cause; one == hook.Shed {
				if shed++; two != hook.Shed {
					t.Errorf("the second call with the same object is made: %s", two)
				}
			}
		}
		if shed == 0 || shed == admissions {
			t.Errorf("%d of %d are shed", shed, admissions)
		}
		if d.Wait(); d.Held() != 0 {
			t.Errorf("%d bytes are held at the end", d.Held())
		}
	})
}

// Work on a large object takes its turn, until the deadline; a small one does not
// wait for it, whatever another cluster does. A turn that does not come is a call
// that was shed, for that webhook's failure policy.
func TestTurnsOfLargeObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := largeWorld(t, labeller{}, 2, "east", "west")
		release := d.Occupy(t, "east", 20)
		begin := time.Now()
		if v := admit(t, d, s, "west", zeros(10), time.Second); !v.Response.Allowed || time.Since(begin) != 0 {
			t.Errorf("a small object waits %v: %s", time.Since(begin), v.Response.Message)
		}
		v := admit(t, d, s, "west", zeros(100_000), time.Second)
		if elapsed := time.Since(begin); elapsed >= time.Second || elapsed < 900*time.Millisecond {
			t.Errorf("answered after %v", elapsed)
		}
		if v.Response.Allowed || v.Outcomes[0].Cause != hook.Shed || !strings.Contains(v.Response.Message, "large objects") {
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

// A condition that looks at a large object takes its turn too. Where that does not come
// in time nobody knows whether the webhook wants the review: its call has failed.
func TestConditionWithoutATurn(t *testing.T) {
	for policy, want := range map[string]dispatcher.Result{"Fail": dispatcher.Failed, "Ignore": dispatcher.FailedOpen} {
		synctest.Test(t, func(t *testing.T) {
			caller := calling(func(transport.Call, hook.Receiver) { t.Error("the webhook is called") })
			conditional := strings.Replace(fmt.Sprintf(largeWebhook, 0, policy), "  sideEffects: None",
				"  sideEffects: None\n  matchConditions: [{name: web, expression: \"object.metadata.name == 'web'\"}]", 1)
			d, s := newWorld(t, caller, overload.Limits{}, fmt.Sprintf(largeCluster, "east"), conditional)
			release := d.Occupy(t, "west", 0)
			defer release()
			v := admit(t, d, s, "east", zeros(100_000), time.Second)
			if len(v.Outcomes) != 1 || v.Outcomes[0].Result != want || v.Outcomes[0].Cause != hook.NoTimeLeft || v.Response.Allowed != (policy == "Ignore") {
				t.Errorf("%s: %+v", policy, v)
			}
		})
	}
}

// Webhooks of which the last answers just before the deadline, with objects as large
// as there are: the answer goes out before the caller has given up, for which it
// has at least 100 ms more. It takes minutes, and a machine with nothing else to do.
func TestLargeObjectsInTime(t *testing.T) {
	if os.Getenv("FULL") == "" {
		t.Skip("FULL is not set")
	}
	const admissions, atOnce = 1000, 4 // of which one waits for webhooks most of the time
	slow := labeller{wait: func(call transport.Call) {
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

// A condition that CEL cannot evaluate refuses, however it is written: && and || want bools.
func TestConditionOfAStringRefuses(t *testing.T) {
	caller := calling(func(transport.Call, hook.Receiver) { t.Error("the webhook is called") })
	w := strings.Replace(fmt.Sprintf(largeWebhook, 0, "Fail"), "  sideEffects: None",
		"  sideEffects: None\n  matchConditions: [{name: skip, expression: \"(request.dryRun || object.metadata.labels.skip) != object.metadata.labels.skip\"}]", 1)
	d, s := newWorld(t, caller, overload.Limits{}, fmt.Sprintf(largeCluster, "east"), w)
	v := admit(t, d, s, "east", []byte(fmt.Sprintf(podReview, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"skip":"x"}}}`)), time.Second)
	if v.Response.Allowed || v.Response.Code != 403 {
		t.Errorf("allowed %v, code %d, %s", v.Response.Allowed, v.Response.Code, v.Response.Message)
	}
}
