// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// heard takes the answers to one call.
type heard chan error

func (h heard) Answered(_ uint64, resp codec.Response, err error) {
	if err == nil && !resp.Allowed {
		err = io.ErrUnexpectedEOF // these tests allow
	}
	h <- err
}

// start makes a call, of which an Outstanding may be left.
func (w *world) start(target *transport.Target) (hook.Outstanding, heard) {
	w.t.Helper()
	body := codec.NewBody(bytes.Clone(w.review), nil)
	defer body.Release()
	call, answers := newCall(target, body, patience), make(heard, 2)
	defer call.Message.Release()
	return w.client.Start(context.Background(), call, hook.NewReceiver(answers, 0)), answers
}

// wait returns what was answered, which is due by itself.
func (h heard) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-h:
		return err
	case <-time.After(patience):
		t.Fatal("no answer")
		return nil
	}
}

// halves is a server that writes an answer in two parts, each when it is told to.
func halves(t *testing.T, text string) (w *world, first, second chan struct{}) {
	first, second = make(chan struct{}), make(chan struct{})
	half := len(text) / 2
	w = newWorld(t, func(c net.Conn) {
		w.eachRequest(func(*http.Request) string {
			<-first
			_, _ = io.WriteString(c, text[:half])
			<-second
			return text[half:]
		})(c)
	})
	return w, first, second
}

// Who asks is left to wait for an answer only where nothing is in the way of the request:
// there is an idle connection. It waits as long as answers usually take, and no longer:
// then the answer, of which a part may be there, comes by itself, over the same connection.
func TestAwaitedAnswers(t *testing.T) {
	for name, text := range map[string]string{"plain": ok(allowBody), "in chunks": chunked("65\r\n" + allowBody + "\r\n0\r\n\r\n")} {
		for _, come := range []string{"", "at once", "half", "none", "left"} {
			t.Run(name+" "+come, func(t *testing.T) {
				w, first, second := halves(t, text)
				target := w.target()
				o, answers := w.start(target)
				if o != nil {
					t.Fatal("a new connection is waited for by who asks")
				}
				first <- struct{}{}
				second <- struct{}{}
				if err := answers.wait(t); err != nil {
					t.Fatal(err)
				}
				if o, answers = w.start(target); o == nil {
					t.Fatal("nothing is left to wait for")
				}
				if due := time.Until(o.Due()); due > 10*time.Millisecond {
					t.Errorf("it is due in %v", due)
				}
				switch come {
				case "at once":
					go func() { first <- struct{}{}; second <- struct{}{} }()
					o.Await()
				case "half":
					go func() { first <- struct{}{} }()
					o.Await()
					second <- struct{}{}
				case "left":
					o.Leave()
					first <- struct{}{}
					second <- struct{}{}
				default:
					o.Await()
					first <- struct{}{}
					second <- struct{}{}
				}
				if err := answers.wait(t); err != nil || len(answers) > 0 {
					t.Errorf("answered %d more times, %v", len(answers), err)
				}
				if n, asked := w.connections.Load(), w.requests.Load(); n != 1 || asked != 2 {
					t.Errorf("%d connections, %d requests", n, asked)
				}
			})
		}
	}
}

// Who asks comes late where it has waited for others. What is there by then is an answer,
// and not a reason for a worker and a hedge.
func TestAwaitedTooLate(t *testing.T) {
	w := answering(t, ok(allowBody))
	target := w.target()
	w.allows(target)
	for range 20 { // a busy machine may stop who asks as it reads
		o, answers := w.start(target)
		if o == nil {
			t.Fatal("nothing is left to wait for")
		}
		<-time.After(time.Until(o.Due()) + 5*time.Millisecond) // by when the server has answered
		o.Await()
		here := len(answers)
		if err := answers.wait(t); err != nil {
			t.Fatal(err)
		}
		if here == 1 {
			return
		}
	}
	t.Error("it is never there when who asks has awaited it")
}
