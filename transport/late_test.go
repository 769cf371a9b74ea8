// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// An answer that has come in time is heard, however late who asked comes to look: it was
// busy with others, or the process stood still.
func TestAnswersThatWaitAreHeard(t *testing.T) {
	for name, text := range map[string]string{"plain": ok(allowBody), "in chunks": chunked("65\r\n" + allowBody + "\r\n0\r\n\r\n")} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, left %v", name, leaves), func(t *testing.T) {
				const timeout = 100 * time.Millisecond
				answered := make(chan struct{}, 1)
				var w *world
				w = newWorld(t, func(c net.Conn) {
					w.eachRequest(func(*http.Request) string {
						defer func() { answered <- struct{}{} }()
						return text
					})(c)
				})
				target := w.target()
				w.allows(target)
				<-answered
				body := codec.NewBody(bytes.Clone(w.review), nil)
				defer body.Release()
				call, answers := newCall(target, body, timeout), make(heard, 2)
				defer call.Message.Release()
				call.Timeout = timeout
				o := w.client.Start(context.Background(), call, hook.NewReceiver(answers, 0))
				if o == nil {
					t.Fatal("nothing is left to wait for")
				}
				<-answered
				<-time.After(2 * time.Until(call.Deadline))
				if leaves {
					o.Leave()
				} else {
					o.Await()
				}
				if err := answers.wait(t); err != nil {
					t.Errorf("an answer that is there: %v", err)
				}
				if got := target.Endpoints()[0].Health(); got.Failures != 0 {
					t.Errorf("it is held against the webhook: %+v", got)
				}
			})
		}
	}
}

// A webhook that has begun to answer when its time is up gets hardly any more of it.
func TestTricklingBeyondTheDeadline(t *testing.T) {
	const timeout = 100 * time.Millisecond
	first, begun := true, make(chan struct{})
	var w *world
	w = newWorld(t, func(c net.Conn) {
		w.eachRequest(func(*http.Request) string {
			if first {
				first = false
				return ok(allowBody)
			}
			for i, b := range []byte(ok(allowBody)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return ""
				}
				if i == 0 {
					close(begun)
				}
				<-time.After(lateByte)
			}
			return ""
		})(c)
	})
	target := w.target()
	w.allows(target)
	body := codec.NewBody(bytes.Clone(w.review), nil)
	defer body.Release()
	call, answers := newCall(target, body, timeout), make(heard, 2)
	defer call.Message.Release()
	o := w.client.Start(context.Background(), call, hook.NewReceiver(answers, 0))
	if o == nil {
		t.Fatal("nothing is left to wait for")
	}
	<-begun
	<-time.After(time.Until(call.Deadline))
	o.Await()
	if err := answers.wait(t); causeOf(err) != hook.Timeout && causeOf(err) != hook.BadAnswer {
		t.Errorf("the call ends with %v", err)
	}
}

// lateByte is the pause between two bytes of a trickle, which takes seconds in all.
const lateByte = 20 * time.Millisecond
