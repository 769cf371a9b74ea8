// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Request is one AdmissionReview to one webhook.
type Request struct {
	Target *transport.Target
	Body   *codec.Body
	Form   codec.Form // of Body
	// Plain, if any, is the same review without what of Form the webhook has only
	// said that it reads: what is sent in place of Body, in the same call where that
	// is possible, if it turns out not to.
	Plain codec.Deferred
	// Want is what the answer must fit. Its UID must not change before the deadline
	// of the call: an attempt that lost its race still verifies what it gets.
	Want codec.Expectation
	// View, if any, is what the others are of.
	View *hook.View
}

// Message is a Request as a transport.Message, which holds a reference to its Bodies.
type Message struct {
	content
	refs atomic.Int32
	mu   sync.Mutex // guards plain
}

// content is what a Message says. It is replaced whole, so that nothing of one call is
// left for the next.
type content struct {
	Request
	negotiation *negotiation
	plain       *codec.Body // Plain, once it has been written
}

var messages = sync.Pool{New: func() any { return new(Message) }}

// NewMessage returns the Message of a Request, with one reference.
func NewMessage(r Request) *Message {
	m := messages.Get().(*Message)
	m.content = content{Request: r, negotiation: negotiationOf(r.Target)}
	m.refs.Store(1)
	m.Body.Retain()
	m.Plain.Retain()
	if m.View != nil {
		m.View.Retain()
	}
	return m
}

// Retain implements transport.Message.
func (m *Message) Retain() { m.refs.Add(1) }

// Release implements transport.Message.
func (m *Message) Release() {
	if m.refs.Add(-1) > 0 {
		return
	}
	m.Body.Release()
	m.Plain.Release()
	if m.plain != nil {
		m.plain.Release()
	}
	if m.View != nil {
		m.View.Release()
	}
	m.content = content{}
	messages.Put(m)
}

// Len implements transport.Message.
func (m *Message) Len() int { return m.Body.Len() }

// Payload implements transport.Message.
func (m *Message) Payload(plain bool) (transport.Payload, error) {
	if !plain {
		return transport.Payload{Fields: formFields(m.Form), Body: m.Body.Bytes()}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plain == nil {
		body, err := m.Plain.Body()
		if err != nil {
			return transport.Payload{}, &hook.CallError{Cause: hook.NotConvertible, Err: fmt.Errorf("the review cannot be written as %s: %w", m.Plain.Form().Encoding, err)}
		}
		m.plain = body
	}
	return transport.Payload{Fields: formFields(m.Plain.Form()), Body: m.plain.Bytes()}, nil
}

// IsNegotiated implements transport.Message.
func (m *Message) IsNegotiated(now time.Time) bool {
	return !m.Plain.IsZero() && m.negotiation.isTrusted(now)
}

// Learn implements transport.Message.
func (m *Message) Learn(l transport.Lesson, now time.Time) *transport.Switch {
	if m.Plain.IsZero() {
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
