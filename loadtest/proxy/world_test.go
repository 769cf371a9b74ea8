// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// silence is how long a test listens for what must not come.
const silence = 50 * time.Millisecond

// world is a target that answers every line with its name and the line, and a
// proxy before it.
type world struct {
	*testing.T
	proxy *proxy.Proxy

	mu    sync.Mutex
	lines []string // as the target has received them
}

func newWorld(t *testing.T) *world {
	w := &world{T: t}
	p, err := proxy.Listen(w.target("one"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if c := p.Counters(); c.Open != 0 {
			t.Errorf("%d connections are open after Close", c.Open)
		}
	})
	w.proxy = p
	return w
}

// target starts a target and returns its address.
func (w *world) target(name string) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serve(name, c) })
		}
	})
	w.Cleanup(func() {
		w.proxy.Close() // what it still holds, the target waits for
		l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

func (w *world) serve(name string, c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			w.mu.Lock()
			w.lines = append(w.lines, line)
			w.mu.Unlock()
		}
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, name+" "+line); err != nil {
			return
		}
	}
}

func (w *world) received() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "")
}

func (w *world) set(f proxy.Fault) {
	w.Helper()
	if err := w.proxy.Set(f); err != nil {
		w.Fatal(err)
	}
}

// caller is a client of the proxy.
type caller struct {
	*testing.T
	net.Conn
	r *bufio.Reader
}

func (w *world) dial() *caller {
	w.Helper()
	c, err := net.DialTimeout("tcp4", w.proxy.Addr(), patience)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return &caller{T: w.T, Conn: c, r: bufio.NewReader(c)}
}

// expectReset wants a connection to be reset, as early as while it is made.
func (w *world) expectReset() {
	w.Helper()
	c, err := net.DialTimeout("tcp4", w.proxy.Addr(), patience)
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	if !errors.Is(err, reset) {
		w.Errorf("the connection ends with %v", err)
	}
}

// ask sends a line and returns the answer.
func (c *caller) ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	answer, err := c.r.ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

// expect asks, and wants an answer and the way it ends.
func (c *caller) expect(line, answer string, ends error) {
	c.Helper()
	got, err := c.ask(line)
	if got != answer || !errors.Is(err, ends) {
		c.Errorf("%q is answered with %q, %v; want %q, %v", line, got, err, answer, ends)
	}
}

// expectSilence asks and hears nothing.
func (c *caller) expectSilence(line, answer string) {
	c.Helper()
	c.SetDeadline(time.Now().Add(silence))
	got, err := c.ask(line)
	if e, ok := errors.AsType[net.Error](err); got != answer || !ok || !e.Timeout() {
		c.Errorf("%q is answered with %q, %v; want %q and silence", line, got, err, answer)
	}
}

const reset = syscall.ECONNRESET

// await waits until the target has received lines, and nothing else.
func (w *world) await(lines string) {
	w.Helper()
	for deadline := time.Now().Add(patience); w.received() != lines; {
		if time.Now().After(deadline) {
			w.Errorf("the target has received %q, want %q", w.received(), lines)
			return
		}
		runtime.Gosched()
	}
}
