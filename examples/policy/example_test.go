// SPDX-License-Identifier: Apache-2.0

// Package policy_test shows a policy that is a Go function.
package policy_test

import (
	"bytes"
	"context"
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

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",
"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},
"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},
"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},
"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}},"oldObject":null,"dryRun":false,"options":null}}`

// owned denies what has no label "owner".
func owned(_ context.Context, q hook.Question) (codec.Response, error) {
	for _, label := range q.Object.Labels {
		if bytes.Equal(label.Key, []byte("owner")) {
			return codec.Response{Allowed: true}, nil
		}
	}
	return codec.Response{Message: "every object needs an owner"}, nil
}

// A function takes part in a chain like a webhook: with rules, a mode, a failure
// policy and a timeout.
func Example() {
	policy := hook.Local(owned)
	defer policy.Close()
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	matcher, err := match.Compile(match.Spec{Rules: rules}, nil)
	if err != nil {
		panic(err)
	}
	entry := &chain.Entry{
		ID: hook.ID{Configuration: "policies", Name: "owned"}, Hook: policy, Noun: "policy",
		Matcher: matcher, Rules: rules, Stage: chain.StagePolicy, Mode: chain.Enforce, FailurePolicy: chain.Fail, Timeout: time.Second,
	}
	east := &chain.Cluster{Name: "east", Validating: (&chain.Chain{}).With([]*chain.Entry{entry})}
	d, err := dispatcher.New(dispatcher.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	body := codec.NewBody([]byte(review), nil)
	defer body.Release()
	if err := r.Decode(body); err != nil {
		panic(err)
	}
	verdict := d.Dispatch(context.Background(), dispatcher.Request{Review: r, Cluster: east, Phase: chain.Validating, Deadline: time.Now().Add(time.Second)})
	fmt.Println(verdict.Response.Allowed, verdict.Response.Code, verdict.Response.Message)
	// Output: false 403 admission policy "owned" denied the request: every object needs an owner
}
