// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// admission is the state of one Dispatch. It belongs to the goroutine of that
// Dispatch; what a call needs is copied into its invocation.
type admission struct {
	Request
	dispatcher *Dispatcher
	ctx        context.Context
	chain      *chain.Chain
	subject    match.Subject // with the View of the object as it is now, under the uid of the round

	slot overload.Slot // once asked for
	shed error         // why there was none

	batch    *batch              // its invocations
	patch    []byte              // concatenated operations of all applied patches
	patches  int                 // how many patches that are
	document *jsonpatch.Document // what came with them applied, borrowed from the Review; nil: must be made of both
	outcomes []Outcome

	transactions []transaction // of Hooks that can take back what they do

	shadows  bool      // it is made for one Shadow webhook, which nobody waits for
	shadowed []Outcome // of Shadow webhooks that cannot be called
	skips    []Skip
}

func (d *Dispatcher) newAdmission(ctx context.Context, req Request) *admission {
	a := d.admissions.Get().(*admission)
	a.Request = req
	a.dispatcher, a.ctx = d, ctx
	a.chain = req.Cluster.Chain(req.Phase)
	a.subject = newSubject(req, d.capacity, d.transcoder)
	return a
}

// newSubject returns what webhooks are matched against. Its View is the caller's to
// release.
func newSubject(req Request, account hook.Account, t codec.Transcoder) match.Subject {
	return match.Subject{
		View: hook.NewView(hook.Source{
			Review:        req.Review,
			Cluster:       req.Cluster.Name,
			ClusterLabels: req.Cluster.Labels,
			Caller:        req.Cluster,
			Mutating:      req.Phase == chain.Mutating,
			Account:       account,
			Until:         req.Deadline.Add(-hearingTime),
			Transcoder:    t,
		}),
		Namespaces: req.Cluster.Namespaces,
		Deadline:   req.Deadline,
	}
}

// release gives back the admission's View, and its own memory. Hooks that still answer
// keep their own references.
func (a *admission) release() {
	d := a.dispatcher
	a.subject.Release()
	*a = admission{}
	d.admissions.Put(a)
}

// admit takes a slot among the admissions for which webhooks are called, once for
// all calls of a, and the bytes of its review. Without a slot each webhook that should
// be called has failed with cause Shed, and its failure policy decides what that means.
func (a *admission) admit() error {
	if a.slot == (overload.Slot{}) && a.shed == nil {
		a.slot, a.shed = a.dispatcher.capacity.Admit(a.Cluster.Name, a.Review.Body, a.Deadline)
	}
	if a.shed != nil {
		return &hook.CallError{Cause: hook.Shed, Err: a.shed}
	}
	return nil
}

// renew gives the admission a uid of its own: kube-apiserver makes one per call, and
// a webhook that remembers its answers by uid must not repeat that of the first
// round. All webhooks of a round share one, so that a review is written once for
// all.
func (a *admission) renew() {
	var random [16]byte
	_, _ = rand.Read(random[:])       // never fails
	random[6] = random[6]&0x0F | 0x40 // version 4 (RFC 9562)
	random[8] = random[8]&0x3F | 0x80
	h := hex.EncodeToString(random[:])
	a.subject.View = a.subject.Renewed([]byte(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]))
}

// settle adds the Outcome of one webhook.
func (a *admission) settle(o Outcome) *Outcome {
	a.outcomes = append(a.outcomes, o)
	return &a.outcomes[len(a.outcomes)-1]
}

// denied reports whether any Outcome so far denies.
func (a *admission) denied() bool {
	for i := range a.outcomes {
		if a.outcomes[i].Denies() {
			return true
		}
	}
	return false
}
