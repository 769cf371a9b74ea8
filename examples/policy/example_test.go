// SPDX-License-Identifier: Apache-2.0

// Package policy_test shows policies that are Go functions. The dispatcher does for them
// what it does for webhooks: modes, failure policies, deadlines, patches with a second
// round, and explain.
package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

const pod = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",
"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},
"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},
"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},
"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}},"oldObject":null,"dryRun":false,"options":null}}`

// A policy decides about the object as it is when its turn comes.
type policy func(context.Context, hook.Question) (codec.Response, error)

// owned denies what has no label "owner".
func owned(_ context.Context, q hook.Question) (codec.Response, error) {
	for _, label := range q.Object.Labels {
		if bytes.Equal(label.Key, []byte("owner")) {
			return codec.Response{Allowed: true}, nil
		}
	}
	return codec.Response{Message: "every object needs an owner"}, nil
}

// broken cannot say anything.
func broken(context.Context, hook.Question) (codec.Response, error) {
	return codec.Response{}, errors.New("the store is down")
}

// slow does not look at its deadline.
func slow(context.Context, hook.Question) (codec.Response, error) {
	<-time.After(300 * time.Millisecond)
	return codec.Response{Allowed: true}, nil
}

// labelled adds a label.
func labelled(name string) policy {
	return func(context.Context, hook.Question) (codec.Response, error) {
		return codec.Response{Allowed: true, Patch: fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels","value":{%q:"ann"}}]`, name)}, nil
	}
}

// entry is how a function takes part in a chain: with rules, a mode, a failure policy and
// a timeout, as a webhook does.
func entry(name string, p policy, settings func(*chain.Entry)) *chain.Entry {
	spec := match.Spec{Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}}
	matcher, err := match.Compile(spec, nil)
	if err != nil {
		panic(err)
	}
	e := &chain.Entry{
		ID: hook.ID{Configuration: "policies", Name: name}, Hook: hook.Local(p), Noun: "policy", Matcher: matcher, Spec: spec,
		Stage: chain.StagePolicy, Mode: chain.Enforce, FailurePolicy: chain.Fail, Timeout: time.Second,
	}
	if settings != nil {
		settings(e)
	}
	return e
}

// admit has a cluster with these policies admit the Pod.
func admit(phase chain.Phase, entries ...*chain.Entry) codec.Response {
	d, err := dispatcher.New(dispatcher.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		defer e.Hook.(*hook.Func).Close()
	}
	r := read()
	defer codec.ReleaseReview(r)
	var v dispatcher.Verdict
	d.Dispatch(context.Background(), dispatcher.Request{
		Review: r, Cluster: cluster(entries), Phase: phase, Deadline: time.Now().Add(10 * time.Second),
	}, &v)
	return v.Response
}

func cluster(entries []*chain.Entry) *chain.Cluster {
	c := (&chain.Chain{}).With(entries)
	return &chain.Cluster{Name: "east", Validating: c, Mutating: c}
}

func read() *codec.Review {
	r, body := codec.AcquireReview(), codec.NewBody([]byte(pod), nil)
	defer body.Release()
	if err := r.Decode(body); err != nil {
		panic(err)
	}
	return r
}

// A policy denies, warns, or is only watched.
func Example_modes() {
	for _, mode := range []chain.Mode{chain.Enforce, chain.Warn, chain.Shadow} {
		resp := admit(chain.Validating, entry("owned", owned, func(e *chain.Entry) { e.Mode = mode }))
		fmt.Println(mode, resp.Allowed, resp.Message, resp.Warnings)
	}
	// Output:
	// Enforce false admission policy "owned" denied the request: every object needs an owner []
	// Warn true  [would be denied if enforced: admission policy "owned" denied the request: every object needs an owner]
	// Shadow true  []
}

// A policy that cannot say anything, or says nothing in time, is a failed call.
func Example_failurePolicies() {
	for name, p := range map[string]policy{"broken": broken, "slow": slow} {
		for _, failure := range []chain.FailurePolicy{chain.Fail, chain.Ignore} {
			resp := admit(chain.Validating, entry(name, p, func(e *chain.Entry) {
				e.FailurePolicy, e.Timeout = failure, 50*time.Millisecond
			}))
			fmt.Println(name, failure, resp.Allowed, resp.Code, len(resp.Warnings))
		}
	}
	// Unordered output:
	// broken Fail false 500 0
	// broken Ignore true 0 1
	// slow Fail false 504 0
	// slow Ignore true 0 1
}

// Policies mutate one after the other. Who asks for it is asked again when the object is
// another one since.
func Example_reinvocation() {
	rounds := func(ctx context.Context, q hook.Question) (codec.Response, error) {
		fmt.Printf("round %d: %d labels\n", q.Round, len(q.Object.Labels))
		return codec.Response{Allowed: true}, nil
	}
	resp := admit(chain.Mutating,
		entry("rounds", rounds, func(e *chain.Entry) { e.Reinvocation = true }),
		entry("labelled", labelled("owner"), nil),
		entry("owned", owned, nil))
	fmt.Println(resp.Allowed, string(resp.Patch))
	// Output:
	// round 0: 0 labels
	// round 1: 1 labels
	// true [{"op":"add","path":"/metadata/labels","value":{"owner":"ann"}}]
}

// What would be asked is known without asking.
func Example_explain() {
	r := read()
	defer codec.ReleaseReview(r)
	e := entry("owned", owned, nil)
	defer e.Hook.(*hook.Func).Close()
	for _, w := range dispatcher.Explain(r, cluster([]*chain.Entry{e}), chain.Validating).Webhooks {
		fmt.Println(w.Configuration, w.Webhook, w.Called, w.FailurePolicy, w.Mode, w.Timeout)
	}
	// Output: policies owned true Fail Enforce 1s
}
