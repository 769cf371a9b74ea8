// SPDX-License-Identifier: Apache-2.0

// Package webhook is the AdmissionReview protocol over transport, as a Hook: in which
// form a review is sent, and what the answer means.
package webhook

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Client makes calls; *transport.Client does.
type Client interface {
	// Start makes a call and notifies to of what it came to, by call.Deadline. The
	// error is a *hook.CallError, or a *codec.AnswerError whose Denies is set. The
	// Message is retained until the call's last attempt has ended. The Outstanding is
	// what hook.Hook returns.
	Start(ctx context.Context, call transport.Call, to hook.Receiver) hook.Outstanding
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
func (h *Hook) Ask(ctx context.Context, q hook.Question, to hook.Receiver) hook.Outstanding {
	call, err := h.call(&q)
	if err != nil {
		to.Receive(codec.Response{}, err)
		return nil
	}
	defer call.Message.Release()
	return h.Client.Start(ctx, call, to)
}

// call returns the call that asks q, whose Message is the caller's to release.
func (h *Hook) call(q *hook.Question) (transport.Call, error) {
	form, err := h.form(q.Review)
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
func (h *Hook) form(r *codec.Review) (codec.Form, error) {
	if h.Version == 0 {
		return codec.Form{}, errNoVersion
	}
	return FormOf(h.Target, h.Version, h.Wire, r.Body.Len(), time.Now), nil
}

// Message returns what asks h about q in a form, with one reference. The error is a
// *hook.CallError.
func (h *Hook) Message(q *hook.Question, form codec.Form) (*Message, error) {
	body, err := q.Payload(form)
	if err != nil {
		return nil, err
	}
	m := messages.Get().(*Message)
	m.content = content{
		Body:        body,
		Want:        codec.Expectation{UID: q.UID, Version: h.Version, Mutating: q.Mutating, Compat: h.Compat},
		question:    *q,
		target:      h.Target,
		negotiation: negotiationOf(h.Target),
		form:        form,
		plain:       h.Wire.Plain(form),
	}
	m.refs.Store(1)
	q.Retain()
	return m, nil
}

// Where implements hook.Located.
func (h *Hook) Where() string { return h.Target.URL() }

// ServedBy implements chain.Served.
func (h *Hook) ServedBy() string { return h.Target.Identity().String() }

// Explain implements hook.Explainer: it names the form of the review that the
// webhook gets before any mutation; "at first" where it changes as soon as the
// webhook's answers offer another.
func (h *Hook) Explain(v *hook.View) (hook.Explanation, error) {
	r := v.Review
	form, err := h.form(r)
	if err != nil {
		return hook.Explanation{}, err
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
	return hook.Explanation{Payload: text}, nil
}

// Message is a Question to a webhook as a transport.Message. It holds a reference to
// the View, which has every form of the review.
type Message struct {
	content
	refs atomic.Int32
}

// content is what a Message says. It is replaced whole, so that nothing of one call is
// left for the next.
type content struct {
	Body *codec.Body       // in form; the View's
	Want codec.Expectation // what the answer must fit

	question    hook.Question
	target      *transport.Target
	negotiation *negotiation
	form        codec.Form
	// plain is form without what the webhook has only said that it reads: what is
	// sent in place of Body, in the same call where that is possible, if it turns out
	// not to. It is made when it is sent.
	plain codec.Form
}

var messages = sync.Pool{New: func() any { return new(Message) }}

// Retain implements transport.Message.
func (m *Message) Retain() { m.refs.Add(1) }

// Release implements transport.Message.
func (m *Message) Release() {
	if m.refs.Add(-1) > 0 {
		return
	}
	m.question.Release()
	m.content = content{}
	messages.Put(m)
}

// Len implements transport.Message.
func (m *Message) Len() int { return m.Body.Len() }

// Payload implements transport.Message.
func (m *Message) Payload(plain bool) (transport.Payload, error) {
	if !plain {
		return transport.Payload{Fields: formFields(m.form), Body: m.Body.Bytes()}, nil
	}
	body, err := m.question.Payload(m.plain)
	if err != nil {
		return transport.Payload{}, err
	}
	return transport.Payload{Fields: formFields(m.plain), Body: body.Bytes()}, nil
}

// Judge implements transport.Message.
func (m *Message) Judge(reply transport.Reply) transport.Judgment {
	if reply.Cut != nil {
		return transport.Judgment{Err: deniesPart(&reply)}
	}
	j := meaningOf(&reply, m.target, m.Want)
	j.Switch = m.negotiation.hear(&reply, j.Err == nil, time.Now)
	return j
}

// IsNegotiated implements transport.Message.
func (m *Message) IsNegotiated(now time.Time) bool {
	return m.plain != m.form && m.negotiation.isTrusted(now)
}

// Learn implements transport.Message.
func (m *Message) Learn(l transport.Lesson, now time.Time) *transport.Switch {
	if m.plain == m.form {
		return nil
	}
	return m.negotiation.learn(l, now)
}
