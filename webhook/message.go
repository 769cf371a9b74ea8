// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

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
	j.Switch = m.negotiation.hear(&reply, j.Err == nil, time.Now())
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

// formFields are the header fields of a form. A webhook that is sent protobuf may
// answer in it.
func formFields(f codec.Form) string {
	const (
		json     = "Content-Type: application/json\r\nAccept: application/json, */*\r\n"
		protobuf = "Content-Type: application/vnd.kubernetes.protobuf\r\nAccept: application/vnd.kubernetes.protobuf, application/json, */*\r\n"
		gzip     = "Content-Encoding: gzip\r\n"
		zstd     = "Content-Encoding: zstd\r\n"
	)
	isJSON := f.Encoding == codec.JSON
	switch {
	case isJSON && f.Coding == codec.Gzip:
		return json + gzip
	case isJSON && f.Coding == codec.Zstd:
		return json + zstd
	case isJSON:
		return json
	case f.Coding == codec.Gzip:
		return protobuf + gzip
	case f.Coding == codec.Zstd:
		return protobuf + zstd
	}
	return protobuf
}
