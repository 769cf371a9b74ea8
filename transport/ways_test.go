// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// told is what became of a call, as who asked sees it.
type told chan string

func (h told) Answered(_ uint64, resp codec.Response, err error) {
	if err != nil {
		h <- fmt.Sprintf("%s: %v", causeOf(err), err)
		return
	}
	h <- fmt.Sprintf("allowed %v", resp.Allowed)
}

// delivery is how a server writes an answer.
type delivery struct {
	name     string
	inPieces bool
	pieces   func(text string) []string
	closes   bool // afterwards
	early    bool // as soon as a byte of the request is there
}

func inOne(text string) []string { return []string{text} }

func inBytes(text string) []string { return strings.Split(text, "") }

func inHalves(text string) []string { return []string{text[:len(text)/2], text[len(text)/2:]} }

// What an answer means, and whether its connection can be used again, does not depend on
// whether who asked waited for it: whatever a webhook answers, and however it comes.
func TestBothWaysAgree(t *testing.T) {
	const line = "HTTP/1.1 200 OK\r\n"
	surplus := map[string]bool{"two answers": true, "half of a second one": true, "a line feed behind": true, "too short a length": true, "length 0": true, "204": true, "101": true,
		"a space before the colon": true, "two lengths": true}
	endless := map[string]bool{"too long a length": true, "no length": true, "nothing": true, "bare line feeds": true}
	length := fmt.Sprintf("Content-Length: %d\r\n", len(denyBody))
	for name, text := range map[string]string{
		"an allow":                 ok(allowBody),
		"a denial":                 ok(denyBody),
		"two answers":              ok(allowBody) + ok(denyBody),
		"half of a second one":     ok(denyBody) + "HTTP/1.1 2",
		"a line feed behind":       ok(denyBody) + "\r\n",
		"too short a length":       strings.Replace(ok(denyBody), length, fmt.Sprintf("Content-Length: %d\r\n", len(denyBody)-1), 1),
		"too long a length":        strings.Replace(ok(denyBody), length, fmt.Sprintf("Content-Length: %d\r\n", len(denyBody)+1), 1),
		"two lengths":              line + length + "Content-Length: 2\r\n\r\n" + denyBody,
		"two lengths, the same":    line + length + length + "\r\n" + denyBody,
		"a negative length":        line + "Content-Length: -1\r\n\r\n" + denyBody,
		"no length":                line + "\r\n" + denyBody,
		"length 0":                 line + "Content-Length: 0\r\n\r\n" + denyBody,
		"length and chunks":        line + length + "Transfer-Encoding: chunked\r\n\r\n" + denyBody,
		"chunks":                   chunked(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(denyBody), denyBody)),
		"bare line feeds":          strings.ReplaceAll(ok(denyBody), "\r\n", "\n"),
		"a folded field":           line + "X: a\r\n b\r\n" + length + "\r\n" + denyBody,
		"a folded length":          line + "Content-Length:\r\n " + fmt.Sprint(len(denyBody)) + "\r\n\r\n" + denyBody,
		"NUL in a field":           line + "X: a\x00b\r\n" + length + "\r\n" + denyBody,
		"NUL in a name":            line + "X\x00: a\r\n" + length + "\r\n" + denyBody,
		"a space before the colon": line + "Content-Length : 2\r\n\r\n" + denyBody,
		"100 first":                "HTTP/1.1 100 Continue\r\n\r\n" + ok(denyBody),
		"103 first":                "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + ok(denyBody),
		"101":                      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + denyBody,
		"204":                      "HTTP/1.1 204 No Content\r\n" + length + "\r\n" + denyBody,
		"500 that allows":          plain("500 No", "", allowBody),
		"429":                      plain("429 Busy", "Retry-After: 0\r\n", ""),
		"HTTP/1.0":                 strings.Replace(ok(denyBody), "1.1", "1.0", 1),
		"HTTP/2":                   strings.Replace(ok(denyBody), "1.1", "2", 1),
		"close":                    plain("200 OK", "Connection: close\r\n", denyBody),
		"another coding":           plain("200 OK", "Content-Encoding: br\r\n", denyBody),
		"two codings":              plain("200 OK", "Content-Encoding: gzip\r\nContent-Encoding: identity\r\n", denyBody),
		"long header":              plain("200 OK", "X: "+strings.Repeat("a", 20<<10)+"\r\n", denyBody),
		"too long a header":        plain("200 OK", "X: "+strings.Repeat("a", 70<<10)+"\r\n", denyBody),
		"a long body":              ok(denyBody + strings.Repeat(" ", 20<<10)),
		"too long a body":          ok(denyBody + strings.Repeat(" ", 70<<10)),
		"another's uid":            ok(strings.Replace(allowBody, "u-1", "u-2", 1)),
		"no HTTP":                  "SSH-2.0-x\r\n",
		"nothing":                  "",
	} {
		for _, d := range []delivery{{"", false, inOne, false, false}, {"in halves", true, inHalves, false, false}, {"byte by byte", true, inBytes, false, false},
			{"and closes", false, inOne, true, false}, {"in halves and closes", true, inHalves, true, false}, {"early", false, inOne, false, true}} {
			if surplus[name] && d.inPieces || d.name == "byte by byte" && len(text) > 1<<10 {
				continue // what comes behind an answer may come when the next request is under way
			}
			t.Run(name+" "+d.name, func(t *testing.T) {
				t.Parallel()
				timeout := patience
				if endless[name] {
					timeout = 100 * time.Millisecond
				}
				bothWays(t, text, d, timeout)
			})
		}
	}
}

func bothWays(t *testing.T, text string, d delivery, timeout time.Duration) {
	waited, calls, then := oneWay(t, text, d, timeout, false)
	left, same, thenLeft := oneWay(t, text, d, timeout, true)
	if waited != left || calls != same {
		t.Errorf("waited for:\n%s, %d connections\nleft:\n%s, %d connections", waited, calls, left, same)
	}
	if then != "allowed true" || thenLeft != then {
		t.Errorf("what is asked then: %s, and %s", then, thenLeft)
	}
}

// oneWay has a webhook answer its second request as d says, to who waits or has left, and
// asks once more. It returns how many connections that took.
func oneWay(t *testing.T, text string, d delivery, timeout time.Duration, leaves bool) (answer string, connections int64, then string) {
	t.Helper()
	var n atomic.Int64
	gone := make(chan struct{})
	w := newWorld(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			if _, err := in.Peek(1); err != nil {
				return
			}
			evil := n.Add(1) == 2
			if evil && d.early {
				_, _ = io.WriteString(c, text)
			}
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			switch {
			case !evil:
				_, _ = io.WriteString(c, ok(allowBody))
			case !d.early:
				for _, piece := range d.pieces(text) {
					_, _ = io.WriteString(c, piece)
				}
			}
			if evil && d.closes {
				_ = c.Close()
				close(gone)
				return
			}
		}
	})
	target := w.target()
	w.allows(target)
	ask := func(timeout time.Duration) (hook.Outstanding, told) {
		body := codec.NewBody(bytes.Clone(w.review), nil)
		defer body.Release()
		call, answers := newCall(target, body, timeout), make(told, 2)
		defer call.Message.Release()
		return w.client.Start(context.Background(), call, hook.NewReceiver(answers, 0)), answers
	}
	o, answers := ask(timeout)
	switch {
	case o == nil:
		t.Fatal("nothing is left to wait for")
	case leaves:
		o.Leave()
	default:
		o.Await()
	}
	answer = <-answers
	if d.closes {
		<-gone
	}
	if o, answers = ask(patience); o != nil {
		o.Await()
	}
	then = <-answers
	return answer, w.connections.Load(), then
}
