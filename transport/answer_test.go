// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// packed is body in a content coding.
func packed(c codec.Coding, body string) string {
	return string(codec.AppendCompressed(nil, c, []byte(body)))
}

// noise is text of n bytes that compresses to half of them: not a byte is as it was.
func noise(n int) string {
	text := make([]byte, n/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(text)
	return hex.EncodeToString(text)
}

// coded is a 200 whose body is said to be in a content coding.
func coded(coding, body string) string {
	return plain("200 OK", "Content-Encoding: "+coding+"\r\n", body)
}

// The rows of docs/contract.md that are about how an answer is framed. What it means is
// webhook's.
func TestAnswers(t *testing.T) {
	for _, row := range []struct {
		name, answer string
		want         hook.Cause
	}{
		{"C1 a plain 200", ok(allowBody), "no error"},
		{"C1 chunked", chunked(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(allowBody), allowBody)), "no error"},
		{"C12 a denial over the limit", ok(denyBody + strings.Repeat(" ", 70_000)), "*codec.AnswerError"},
		{"C12 a denial over the limit, in chunks", chunked(fmt.Sprintf("%x\r\n%s\r\n10000\r\n%s\r\n0\r\n\r\n", len(denyBody), denyBody, strings.Repeat(" ", 1<<16))), "*codec.AnswerError"},
		{"C12 a denial over the limit, without a length", "HTTP/1.1 200 OK\r\n\r\n" + denyBody + strings.Repeat(" ", 70_000), "*codec.AnswerError"},
		{"C12 a denial behind the limit", ok(strings.Repeat(" ", 70_000) + denyBody), hook.BadAnswer},
		{"C12 a denial behind the limit, in chunks", chunked(fmt.Sprintf("ea60\r\n%s\r\n2710\r\n%s%s\r\n0\r\n\r\n", strings.Repeat(" ", 60_000), strings.Repeat(" ", 10_000-len(denyBody)), denyBody)), hook.BadAnswer},
		{"C12 an allow over the limit that quotes a denial", ok(fmt.Sprintf(`{"response":{"allowed":true,"x":%q}}`, denyBody) + strings.Repeat(" ", 70_000)), hook.BadAnswer},
		{"C12 a denial over the limit with status 500", plain("500 No", "", denyBody+strings.Repeat(" ", 70_000)), hook.BadAnswer},
		{"C12 a denial over the limit, compressed", coded("gzip", packed(codec.Gzip, denyBody+noise(200_000))), "*codec.AnswerError"},
		{"C12 headers of 60 KiB", plain("200 OK", strings.Repeat("X-H: 234567890\r\n", 3_800), allowBody), "no error"},
		{"C12 headers of 60 KiB, a denial", plain("200 OK", strings.Repeat("X-H: 234567890\r\n", 3_800), denyBody), "a denial"},
		{"C12 headers of 80 KiB, a denial", plain("200 OK", strings.Repeat("X-H: 234567890\r\n", 5_000), denyBody), "*codec.AnswerError"},
		{"C12 headers of 80 KiB", plain("200 OK", strings.Repeat("X-H: 234567890\r\n", 5_000), allowBody), hook.BadAnswer},
		{"C12 a body over the limit", ok(strings.Repeat(" ", 70_000) + allowBody), hook.BadAnswer},
		{"C27 101", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", hook.HTTPStatus},
		{"C27 Set-Cookie and unsolicited headers", plain("200 OK", "Set-Cookie: a=b\r\nX-Other: c\r\n", allowBody), "no error"},
		{"C27 trailers", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\nX-T: 1\r\n\r\n", len(allowBody), allowBody), "no error"},
		{"C12 F15 a chunk of 16 EiB", chunked("ffffffffffffffff\r\n"), hook.BadAnswer},
		{"C12 F15 a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + allowBody, hook.BadAnswer},
		{"C26 two lengths that differ", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n" + strings.TrimPrefix(ok(allowBody), "HTTP/1.1 200 OK\r\n"), hook.BadAnswer},
		{"C27 F15 10,000 trailers", chunked(fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n", len(allowBody), allowBody, strings.Repeat("X-T: y\r\n", 10_000))), hook.BadAnswer},
		{"C27 100 and 103 before the answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok(allowBody), "no error"},
		{"C9 a body that begins like another answer", ok("HTTP/1.1 200 OK\r\n\r\n" + allowBody), hook.BadAnswer},
		{"F15 HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", hook.BadAnswer},
		{"F15 10,000 headers", plain("200 OK", strings.Repeat("X-H: y\r\n", 10_000), allowBody), hook.BadAnswer},
		{"F15 garbage", "what do you want\r\n\r\n", hook.BadAnswer},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := answeringPiped(t, row.answer)
			w.fails(w.target(), patience, row.want)
		})
	}
}

// C11, F16: a redirect is no answer, and the target of it sees nothing.
func TestRedirects(t *testing.T) {
	for _, s := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprintf("C11 F16 status %d", s), func(t *testing.T) {
			other := answering(t, ok(allowBody))
			w := answering(t, plain(fmt.Sprintf("%d Moved", s), "Location: https://"+other.address+"/\r\n", ""))
			w.fails(w.target(), patience, hook.HTTPStatus)
			if other.connections.Load() != 0 {
				t.Error("the redirect was followed")
			}
		})
	}
}

// C12: a second, or what is left of the call, is time for the beginning of an answer
// that is over the limit, in which a denial may be.
func TestBeginningOfALargeAnswer(t *testing.T) {
	for _, row := range []struct {
		name, answer string
		want         hook.Cause
	}{
		{"C12 a denial over the limit, in one chunk", chunked(fmt.Sprintf("%x\r\n%s", len(denyBody)+1<<20, denyBody)), "*codec.AnswerError"},
		{"C12 a body over the limit, announced only", "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", hook.BadAnswer},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for timeout, want := range map[time.Duration]time.Duration{10 * time.Second: time.Second, 300 * time.Millisecond: 300 * time.Millisecond} {
					w := answeringPiped(t, row.answer)
					begin := time.Now()
					w.fails(w.target(), timeout, row.want)
					if took := time.Since(begin); took != want {
						t.Errorf("a call of %v took %v", timeout, took)
					}
				}
			})
		})
	}
}

// C12: an answer may have 4 MiB by default, and no more.
func TestAnswerLimit(t *testing.T) {
	for size, want := range map[int]hook.Cause{4 << 20: "no error", 4<<20 + 1: hook.BadAnswer} {
		synctest.Test(t, func(t *testing.T) {
			var w *world
			w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
				w.eachRequest(func(*http.Request) string { return ok(allowBody + strings.Repeat(" ", size-len(allowBody))) })(c)
			})
			w.fails(w.target(), patience, want)
		})
	}
}

// C12, F15: an answer that never ends is bounded by its size or by the deadline.
func TestEndlessAnswers(t *testing.T) {
	t.Run("C12 endless chunks", func(t *testing.T) {
		w := newWorld(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, err := c.Write([]byte(chunked("")))
			for err == nil {
				_, err = c.Write([]byte("400\r\n" + strings.Repeat(" ", 1024) + "\r\n"))
			}
		})
		w.fails(w.target(), patience, hook.BadAnswer)
	})
	t.Run("F15 a byte now and then", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4096))
				for _, b := range []byte(ok(allowBody)) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					<-time.After(100 * time.Millisecond)
				}
			})
			begin := time.Now()
			w.fails(w.target(), 3*time.Second, hook.Timeout)
			if took := time.Since(begin); took != 3*time.Second {
				t.Errorf("the call took %v", took)
			}
		})
	})
	t.Run("F15 a storm of 1xx", func(t *testing.T) {
		w := newWorld(t, func(c net.Conn) {
			_, err := c.Read(make([]byte, 4096))
			for err == nil {
				_, err = c.Write([]byte("HTTP/1.1 103 Early Hints\r\n\r\n"))
			}
		})
		w.fails(w.target(), patience, hook.BadAnswer)
	})
}

// C1: a webhook may answer, and close, before it has read the whole review.
// kube-apiserver's client takes that for an answer, and a denial must not be lost.
func TestAnswerBeforeTheReviewIsRead(t *testing.T) {
	w := newWorld(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, plain("200 OK", "Connection: close\r\n", denyBody))
	})
	w.review = []byte(reviewBody + strings.Repeat(" ", 16<<20))
	if resp, err := w.call(w.target(), patience); err != nil || resp.Allowed {
		t.Errorf("the answer is %+v, %v", resp, err)
	}
}

// F15: a FIN at any point of an answer makes it none.
func TestTruncatedAnswers(t *testing.T) {
	whole := fmt.Sprintf("%x\r\n%s\r\n", len(allowBody), allowBody)
	others := map[string]string{
		"F15 in a body without a length":     "unexpected end", // of the review
		"F15 between the chunks and the end": "answered with something else than HTTP",
	}
	for name, text := range map[string]string{
		"F15 in the status line":             "HTTP/1.1 2",
		"F15 in the header":                  "HTTP/1.1 200 OK\r\nContent-Le",
		"F15 after an interim answer":        "HTTP/1.1 103 Early Hints\r\n\r\n",
		"F15 before the body":                strings.TrimSuffix(ok(allowBody), allowBody),
		"F15 in the body":                    strings.TrimSuffix(ok(allowBody), "}"),
		"F15 in a body without a length":     "HTTP/1.1 200 OK\r\n\r\n" + strings.TrimSuffix(allowBody, "}"),
		"F15 in a chunk":                     chunked(whole[:20]),
		"F15 after a chunk":                  chunked(whole),
		"F15 between the chunks and the end": chunked(whole + "0\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4096))
				_, _ = c.Write([]byte(text))
			})
			want := cmp.Or(others[name], "ended the connection in the middle of its answer")
			if _, err := w.call(w.target(), patience); causeOf(err) != hook.BadAnswer || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// C26: what is not the answer to this very request is nobody's answer.
func TestStaleAnswers(t *testing.T) {
	t.Run("C26 a second answer after the first", func(t *testing.T) {
		// Both have the uid of the next call too, as in a reinvocation.
		for _, first := range []string{ok(allowBody), plain("200 OK", strings.Repeat("X-H: 234567890\r\n", 3_800), allowBody)} {
			w := answering(t, first+ok(denyBody))
			target := w.target()
			for range 5 {
				w.allows(target)
			}
			if w.connections.Load() != 5 {
				t.Errorf("%d connections for 5 calls", w.connections.Load())
			}
		}
	})
	t.Run("C26 a second answer while the connection is idle", func(t *testing.T) {
		sent := make(chan struct{})
		w := newWorld(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte(ok(allowBody)))
			<-sent
			_, _ = c.Write([]byte(ok(denyBody)))
			sent <- struct{}{}
			_, _ = c.Read(make([]byte, 1))
		})
		target := w.target()
		w.allows(target)
		sent <- struct{}{}
		<-sent
		go func() { sent <- struct{}{}; <-sent }() // of the second connection
		w.allows(target)
		if w.connections.Load() != 2 {
			t.Errorf("%d connections", w.connections.Load())
		}
	})
	t.Run("C26 F7 an answer after the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var served *world
			served = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
				served.eachRequest(func(*http.Request) string {
					if served.requests.Load() == 1 {
						<-time.After(2 * time.Second)
					}
					return ok(allowBody)
				})(c)
			})
			target := served.target()
			served.fails(target, time.Second, hook.Timeout)
			<-time.After(2 * time.Second)
			served.allows(target)
			if served.connections.Load() != 2 {
				t.Errorf("%d connections: the one that timed out was used again", served.connections.Load())
			}
		})
	})
}

// coalesced holds back what is written until flush, so that several TLS records
// arrive in one segment.
type coalesced struct {
	net.Conn
	mu   sync.Mutex
	hold bool
	held []byte
}

func (c *coalesced) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hold {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}

// together writes each text as a record of its own, all in one segment.
func (c *coalesced) together(secured net.Conn, texts ...string) {
	c.mu.Lock()
	c.hold = true
	c.mu.Unlock()
	for _, text := range texts {
		_, _ = secured.Write([]byte(text))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.Conn.Write(c.held)
	c.held, c.hold = nil, false
}

// C26: what waits decrypted, or in TLS records that were read ahead, is nobody's
// answer either: it is neither in HTTP's buffer nor in the socket.
func TestStaleAnswersInsideTLS(t *testing.T) {
	large := strings.Replace(allowBody, "{", "{"+strings.Repeat(" ", 40_000), 1)
	for _, row := range []struct {
		name    string
		records []string
	}{
		{"C26 in a record of its own", []string{ok(allowBody), ok(denyBody)}},
		{"C26 in the record that ends a large answer", []string{ok(large) + ok(denyBody)}},
		{"C26 in a record after a large answer", []string{ok(large), ok(denyBody)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorldOver(t, func(c *coalesced, secured net.Conn) {
				in := bufio.NewReader(secured)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					c.together(secured, row.records...)
				}
			})
			target := w.target()
			for range 5 {
				w.allows(target)
			}
			if w.connections.Load() != 5 {
				t.Errorf("%d connections for 5 calls", w.connections.Load())
			}
		})
	}
}

// 429 and Retry-After, in seconds or as a date, keep second attempts of that cluster
// away for so long, but no longer than a minute.
func TestPausesThatWebhooksAskFor(t *testing.T) {
	in := func(d time.Duration) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	}
	is := func(value string) func() string { return func() string { return value } }
	for _, row := range []struct {
		name, status string
		after        func() string // the value of Retry-After; nil: none
		want         time.Duration
	}{
		{"429", "429 Slow Down", nil, time.Second},
		{"429 with seconds", "429 Slow Down", is("3"), 3 * time.Second},
		{"429 with a date", "429 Slow Down", in(20 * time.Second), 20 * time.Second},
		{"429 with nonsense", "429 Slow Down", is("soon"), time.Second},
		{"429 with less than no time", "429 Slow Down", is("-5"), time.Second},
		{"503", "503 Later", nil, 0},
		{"503 with seconds", "503 Later", is("7"), 7 * time.Second},
		{"503 with no time", "503 Later", is("0"), 0},
		{"503 with a minute and a second", "503 Later", is("61"), time.Minute},
		{"503 with more seconds than there are", "503 Later", is("99999999999999999999"), 0},
		{"503 with as many seconds as possible", "503 Later", is("9223372036854775807"), time.Minute},
		{"503 with a date", "503 Later", in(30 * time.Second), 30 * time.Second},
		{"503 with a date of tomorrow", "503 Later", in(24 * time.Hour), time.Minute},
		{"503 with a date of yesterday", "503 Later", in(-24 * time.Hour), 0},
		{"500 with seconds", "500 Broken", is("2"), 2 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *world
				script := []string{row.status}
				w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
					w.eachRequest(func(*http.Request) (answer string) {
						switch now := script[0]; now {
						case "reset":
						case "allow":
							answer = plain("200 OK", "Connection: close\r\n", allowBody)
						default:
							header := "Connection: close\r\n"
							if row.after != nil {
								header += "Retry-After: " + row.after() + "\r\n"
							}
							answer = plain(now, header, "")
						}
						script = script[1:]
						return answer
					})(c)
				})
				w.repeat.Safe = true
				target := w.target()
				w.fails(target, patience, hook.HTTPStatus)
				isRetried := func(cluster string, want bool) {
					t.Helper()
					w.cluster, script = cluster, []string{"reset", "allow"}
					if _, err := w.call(target, patience); (err == nil) != want {
						t.Errorf("a broken connection of %s is retried: %v (%v), want %v", cluster, !want, err, want)
					}
				}
				if row.want > 0 {
					<-time.After(row.want - 1)
					isRetried("east", false)
					isRetried("west", true)
					<-time.After(1)
				}
				isRetried("east", true)
			})
		})
	}
}

// A webhook that asks for a pause gets no hedges meanwhile.
func TestNoHedgesDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var wait atomic.Int64
		busy := make(chan bool, 1)
		w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
			w.eachRequest(func(*http.Request) string {
				select {
				case <-busy:
					return plain("429 Slow Down", "Retry-After: 5\r\n", "")
				case <-time.After(time.Duration(wait.Load())):
					return ok(allowBody)
				}
			})(c)
		})
		w.repeat.Safe = true
		target := w.target()
		hedges := func(after time.Duration) int64 {
			wait.Store(int64(10 * time.Millisecond))
			for range 40 {
				w.allows(target)
			}
			<-time.After(after)
			before := target.Stats().Hedges
			wait.Store(int64(time.Second))
			body := codec.NewBody([]byte(reviewBody), nil)
			call := newCall(target, body, patience)
			call.Repeat = w.repeat
			if _, err := w.ask(call); err != nil {
				t.Error(err)
			}
			<-time.After(time.Second) // the hedge, which has lost, has the body too
			return target.Stats().Hedges - before
		}
		if n := hedges(time.Second); n != 1 {
			t.Fatalf("%d hedges of a slow call", n)
		}
		busy <- true
		w.fails(target, patience, hook.HTTPStatus)
		if n := hedges(time.Second); n != 0 {
			t.Errorf("%d hedges during the pause", n)
		}
		if n := hedges(5 * time.Second); n != 1 {
			t.Errorf("%d hedges after the pause", n)
		}
	})
}
