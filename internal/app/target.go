// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// probeTimeout bounds how long a new webhook is asked whether it is there.
const probeTimeout = time.Second

// probeReview is the dry run that a probe asks about: a ConfigMap that nobody
// creates.
const probeReview = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"00000000-0000-0000-0000-00000000d157",` +
	`"kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},` +
	`"requestKind":{"group":"","version":"v1","kind":"ConfigMap"},"requestResource":{"group":"","version":"v1","resource":"configmaps"},` +
	`"name":"admission-dispatcher-probe","namespace":"default","operation":"CREATE","userInfo":{"username":"admission-dispatcher-probe"},` +
	`"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"admission-dispatcher-probe","namespace":"default"}},"oldObject":null,"dryRun":true,"options":null}}`

// target is a Target as a Resource: whom it is looked up and connected by.
type target struct {
	registry.Unconnected
	resolver *transport.Resolver
	client   *transport.Client
}

// Open looks up the addresses.
func (t target) Open(ctx context.Context) { t.resolver.Refresh(ctx, t.Target) }

// Ready reports whether the Target can be connected to and, if there is a dry run,
// answers it.
func (t target) Ready(q *chain.DryRun) error {
	if err := t.client.Probe(t.Target, probeTimeout); err != nil || q == nil {
		return err
	}
	return answers(q)
}

// answers reports whether a dry run is answered. Any verdict will do: it shows that
// somebody reads reviews there.
func answers(q *chain.DryRun) error {
	body := codec.NewBody([]byte(probeReview), nil)
	defer body.Release()
	review := codec.AcquireReview()
	defer codec.ReleaseReview(review)
	if err := review.Decode(body); err != nil {
		return err
	}
	view := hook.NewView(hook.Source{Review: review, Cluster: q.Cluster, Mutating: q.Phase == chain.Mutating})
	defer view.Release()
	answered := make(probed, 1)
	asked := hook.Question{View: view, Deadline: time.Now().Add(probeTimeout)}
	if o := q.Webhook.Hook.Ask(context.Background(), asked, hook.NewReceiver(answered, 0)); o != nil {
		o.Await()
	}
	err := <-answered
	if denial, ok := errors.AsType[*codec.AnswerError](err); ok && denial.Denies {
		return fmt.Errorf("the dry-run review of a probe is answered with an unclear denial: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the dry-run review of a probe: %w", err)
	}
	return nil
}

// probed takes what came of a probe's dry run, as a hook.Asker.
type probed chan error

// Answered implements hook.Asker.
func (p probed) Answered(_ uint64, _ codec.Response, err error) {
	select {
	case p <- err:
	default: // a second answer
	}
}
