// SPDX-License-Identifier: Apache-2.0

// Package webhook is the AdmissionReview protocol over transport, as a Hook: in which
// form a review is sent, and what the answer means.
package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Client makes calls; *transport.Client does.
type Client interface {
	// Start makes a call and notifies to of what it came to, by call.Deadline. The
	// error is a *hook.CallError, or a *codec.AnswerError whose Denies is set. The
	// Message is retained until the call's last attempt has ended.
	Start(ctx context.Context, call transport.Call, to hook.Receiver)
}

// Hook is one webhook of a configuration, as it is asked for a cluster. It is data,
// and read only. It implements hook.Hook, hook.Explainer, hook.Located and chain.Served.
type Hook struct {
	ID      hook.ID
	Target  *transport.Target `json:"-"`
	Version codec.Version     // the first of admissionReviewVersions that we speak; zero if none
	Wire    Wire              // how reviews are written for it
	Repeat  transport.Repeat  // Safe is the Question's to say
	Compat  codec.Compatibility
	Client  Client `json:"-"` // nil where nobody is asked
}

var errNoVersion = &hook.CallError{Cause: hook.NotConvertible, Err: errors.New("none of its admissionReviewVersions is supported")}

// Ask implements hook.Hook.
func (h *Hook) Ask(ctx context.Context, q hook.Question, to hook.Receiver) {
	call, err := h.call(&q)
	if err != nil {
		to.Receive(codec.Response{}, err)
		return
	}
	defer call.Message.Release()
	h.Client.Start(ctx, call, to)
}

// call returns the call that asks q, whose Message is the caller's to release.
func (h *Hook) call(q *hook.Question) (transport.Call, error) {
	form, err := h.form(q.Review, time.Now())
	if err != nil {
		return transport.Call{}, err
	}
	message, err := h.Message(q, form)
	if err != nil {
		return transport.Call{}, err
	}
	call := transport.Call{
		Target:   h.Target,
		Message:  message,
		Cluster:  q.Cluster,
		Resource: q.Resource(),
		Shadow:   q.Shadow,
		Deadline: q.Deadline,
		Timeout:  q.Timeout,
		Wait:     q.Wait,
		Over:     q.Over,
		Repeat:   h.Repeat,
		Owner:    h.ID,
	}
	call.Repeat.Safe = q.Repeatable
	return call, nil
}

// form is the form in which the webhook is sent the review now.
func (h *Hook) form(r *codec.Review, now time.Time) (codec.Form, error) {
	if h.Version == 0 {
		return codec.Form{}, errNoVersion
	}
	return FormOf(h.Target, h.Version, h.Wire, r.Body.Len(), now), nil
}

// Where implements hook.Located.
func (h *Hook) Where() string { return h.Target.URL() }

// ServedBy implements chain.Served.
func (h *Hook) ServedBy() string { return h.Target.Identity().String() }

// Explain implements hook.Explainer: it names the form of the review that the
// webhook gets before any mutation; "at first" where it changes as soon as the
// webhook's answers offer another.
func (h *Hook) Explain(r *codec.Review) (string, error) {
	form, err := h.form(r, time.Now())
	if err != nil {
		return "", err
	}
	text := form.Encoding.String() + " " + form.Version.String()
	if h.Wire.Encoding == Auto || h.Wire.Compression == CompressAuto {
		text += " at first"
	}
	switch {
	case form == codec.Form{Version: r.Version, Encoding: r.Encoding}:
		text += ", as received"
	case form.Encoding == codec.JSON && r.Encoding == codec.JSON && form.Version != r.Version:
		text += ", spliced"
	case form.Encoding == codec.ProtobufNative:
		text += ", or Protobuf where that would lose something"
	}
	if form.Coding != codec.Identity {
		text += ", " + form.Coding.String()
	}
	return text, nil
}
