// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// erratic is a server that answers each review by its own uid: at once, late, in pieces,
// twice, with the end of the connection, or not at all. Whose uid is odd it denies.
func erratic(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		review, _ := io.ReadAll(r.Body)
		_, uid, _ := bytes.Cut(review, []byte(`"uid":"`))
		uid, _, _ = bytes.Cut(uid, []byte(`"`))
		body := allowBody
		if isOdd(string(uid)) {
			body = denyBody
		}
		text := ok(strings.Replace(body, "u-1", string(uid), 1))
		switch rand.IntN(12) {
		case 0:
			<-time.After(rand.N(15 * time.Millisecond))
		case 1:
			half := rand.IntN(len(text))
			_, _ = io.WriteString(c, text[:half])
			<-time.After(rand.N(15 * time.Millisecond))
			text = text[half:]
		case 2:
			text += text
		case 3:
			_, _ = io.WriteString(c, text)
			return
		case 4:
			return
		case 5:
			_, _ = io.WriteString(c, text[:rand.IntN(len(text))])
			return
		case 6:
			text = strings.Replace(text, "Content-Type", "Connection: close\r\nContent-Type", 1)
		}
		_, _ = io.WriteString(c, text)
	}
}

func isOdd(uid string) bool { return strings.IndexByte("13579", uid[len(uid)-1]) >= 0 }

// Whatever a webhook does to its connections, and whoever waits for what: each call has one
// answer, which is its own, and no attempt, slot or connection is held in the end: what is
// lost of these few would soon be missed.
func TestErraticWebhook(t *testing.T) {
	w := newWorld(t, erratic)
	w.client = transport.NewClient(transport.ClientConfig{Addresses: loopback, Concurrency: 16})
	target := w.target()
	verdicts := [2]int{}
	var mu sync.Mutex
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 100 {
				uid := fmt.Sprintf("u-%d-%d", caller, i)
				body := codec.NewBody([]byte(strings.Replace(reviewBody, "u-1", uid, 1)+strings.Repeat(" ", rand.IntN(2)*20_000)), func(b []byte) { clear(b) })
				call := callIn(codec.Form{Version: codec.V1}, uid, target, body, time.Second)
				call.Repeat, call.Timeout = transport.Repeat{Safe: true, Failures: i%2 == 0, DenyWins: i%3 == 0}, time.Second
				answers := make(told, 4)
				o := w.client.Start(context.Background(), call, hook.NewReceiver(answers, 0))
				call.Message.Release()
				body.Release()
				switch {
				case o == nil:
				case i%5 == 0:
					o.Leave()
				case i%5 == 1:
					<-time.After(rand.N(12 * time.Millisecond))
					o.Await()
				default:
					o.Await()
				}
				answer := <-answers
				if isAnswer := strings.HasPrefix(answer, "allowed"); isAnswer {
					mu.Lock()
					verdicts[i%2]++
					mu.Unlock()
					if want := fmt.Sprintf("allowed %v", !isOdd(uid)); answer != want {
						t.Errorf("%s: %s, want %s", uid, answer, want)
					}
				}
				if len(answers) > 0 {
					t.Errorf("%s: another answer: %s", uid, <-answers)
				}
			}
		})
	}
	callers.Wait()
	w.client.Close()
	if n := target.Endpoints()[0].Outstanding(); n != 0 {
		t.Errorf("%d attempts are under way", n)
	}
	if verdicts[0] < 50 || verdicts[1] < 50 {
		t.Errorf("only %v calls were answered", verdicts)
	}
}
