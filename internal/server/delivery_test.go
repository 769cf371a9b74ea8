// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/match"
)

// delivery is a server whose dispatcher has a function in its chain that takes
// something for each review, and can give it back. Each func may be nil.
type delivery struct {
	*world
	*dispatcher.Dispatcher
	cluster *chain.Cluster
	conns   chan *net.TCPConn // that were accepted

	decide  func(hook.Question) codec.Response // default: allow
	decided func(dispatcher.Request, *dispatcher.Verdict)
	observe func()

	mu     sync.Mutex
	undone []string // uids
}

// Undo implements hook.Undoer, for the Hook of d.
type quota struct {
	*hook.Func
	d *delivery
}

func (q quota) Undo(_ context.Context, asked hook.Question) {
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.d.undone = append(q.d.undone, string(asked.Review.UID))
}

// Observe implements dispatcher.Observer.
func (d *delivery) Observe(context.Context, *dispatcher.Record) {
	if d.observe != nil {
		d.observe()
	}
}

// Dispatch implements server.Decider.
func (d *delivery) Dispatch(ctx context.Context, req dispatcher.Request, v *dispatcher.Verdict) {
	req.Cluster, req.Path, req.Deadline = d.cluster, nil, time.Now().Add(patience)
	d.Dispatcher.Dispatch(ctx, req, v)
	if d.decided != nil {
		d.decided(req, v)
	}
}

// watched is a listener that shows what it accepts.
type watched struct {
	net.Listener
	conns chan<- *net.TCPConn
}

func (l watched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.conns <- c.(*net.TCPConn)
	}
	return c, err
}

// headers is how long TLS and the head of a request may take, and reading after it.
const headers = time.Second

func newDelivery(t *testing.T, stage chain.Stage) *delivery {
	t.Helper()
	return newSlowDelivery(t, stage, time.Minute)
}

// newSlowDelivery is newDelivery where one write takes as long as it may.
func newSlowDelivery(t *testing.T, stage chain.Stage, write time.Duration) *delivery {
	t.Helper()
	d := &delivery{conns: make(chan *net.TCPConn, 10)}
	local := hook.Local(func(_ context.Context, q hook.Question) (codec.Response, error) {
		if d.decide != nil {
			return d.decide(q), nil
		}
		return codec.Response{Allowed: true}, nil
	})
	t.Cleanup(local.Close)
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
	}}
	matcher, err := match.Compile(match.Spec{Rules: rules}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.cluster = &chain.Cluster{Name: "a", Validating: (&chain.Chain{}).With([]*chain.Entry{{
		ID: hook.ID{Name: "quota"}, Hook: quota{local, d}, Matcher: matcher, Stage: stage, Timeout: patience,
	}})}
	if d.Dispatcher, err = dispatcher.New(dispatcher.Config{Logger: slog.New(slog.DiscardHandler), Observers: []dispatcher.Observer{d}}); err != nil {
		t.Fatal(err)
	}
	d.world = newWorldOn(t, watched{listen(t), d.conns}, func(cfg *server.Config) {
		cfg.Decider, cfg.WriteTimeout, cfg.HeaderTimeout = d, write, headers
	})
	return d
}

// taken returns the uids for which the function has taken something back, once nothing
// runs any more.
func (d *delivery) taken() []string {
	d.t.Helper()
	if err := d.server.Shutdown(d.t.Context()); err != nil {
		d.t.Errorf("Shutdown: %v", err)
	}
	d.Wait()
	return d.undone
}

// isUndone fails the test unless what was done for these uids, and only that, was
// taken back, once.
func (d *delivery) isUndone(want ...string) {
	d.t.Helper()
	if got := d.taken(); !slices.Equal(got, want) {
		d.t.Errorf("undone for %q, want %q", got, want)
	}
}

// arrival returns when something has come over c that nobody has read, if it is only
// the end.
func arrival(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return err != syscall.EAGAIN
	})
}

// What the caller got stays done, on a connection that is kept and on one that is
// closed with the answer.
func TestDeliveredIsNotUndone(t *testing.T) {
	d := newDelivery(t, chain.StageTransactional)
	c := d.dial()
	c.isAllowed(c.ask(good("1")), "1")
	c.isAllowed(c.ask(good("2")), "2")
	d.server.LameDuck()
	got := c.ask(good("3"))
	if c.isAllowed(got, "3"); !got.close {
		t.Error("no Connection: close")
	}
	c.isClosed()
	d.isUndone()
}

// An admission that does not take place is undone, though its answer arrives.
func TestDeniedIsUndoneOnce(t *testing.T) {
	d := newDelivery(t, chain.StageTransactional)
	d.decide = func(q hook.Question) codec.Response { return codec.Response{Allowed: q.Review.DryRun} }
	c := d.dial()
	if got := c.ask(good("1")); !strings.Contains(got.body, `"allowed":false`) {
		t.Errorf("answer %q", got.body)
	}
	c.isAllowed(c.ask(message{body: strings.Replace(review("2"), `"dryRun":false`, `"dryRun":true`, 1)}), "2")
	got := d.taken()
	slices.Sort(got) // each is on a goroutine of its own
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("undone for %q", got)
	}
}

// A caller that leaves before there is an answer, in whatever way, gets none, and what
// was done for it is undone.
func TestCallerHasLeft(t *testing.T) {
	const late = "when there was no time to read any more"
	for name, leave := range map[string]func(*tls.Conn) error{
		"says goodbye": (*tls.Conn).Close,
		"ends":         func(c *tls.Conn) error { return c.NetConn().Close() },
		"resets": func(c *tls.Conn) error {
			_ = c.NetConn().(*net.TCPConn).SetLinger(0)
			return c.NetConn().Close()
		},
		"sends no more": (*tls.Conn).CloseWrite,
		late:            (*tls.Conn).Close,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDelivery(t, chain.StageTransactional)
			entered, left := make(chan struct{}), make(chan struct{})
			d.decide = func(hook.Question) codec.Response {
				close(entered)
				<-left
				return codec.Response{Allowed: true}
			}
			c := d.dial()
			c.send(good("1"))
			<-entered
			if err := leave(c.Conn.(*tls.Conn)); err != nil {
				t.Fatal(err)
			}
			arrival(<-d.conns)
			if name == late {
				<-time.After(headers)
			}
			close(left)
			if name == "sends no more" {
				c.isClosed()
			}
			d.isUndone("1")
		})
	}
}

// Where nothing depends on who gets the answer, a caller that sends no more gets it all
// the same.
func TestCallerSendsNoMore(t *testing.T) {
	d := newDelivery(t, chain.StageValidating)
	entered, left := make(chan struct{}), make(chan struct{})
	d.decide = func(hook.Question) codec.Response {
		close(entered)
		<-left
		return codec.Response{Allowed: true}
	}
	c := d.dial()
	c.send(good("1"))
	<-entered
	if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	arrival(<-d.conns)
	close(left)
	c.isAllowed(c.answer(), "1")
	d.isUndone()
}

// A caller that has its next request under way has not left, and nothing of that is
// lost.
func TestPipeliningCallerIsThere(t *testing.T) {
	d := newDelivery(t, chain.StageTransactional)
	entered, sent := make(chan struct{}, 2), make(chan struct{})
	d.decide = func(hook.Question) codec.Response {
		entered <- struct{}{}
		<-sent
		return codec.Response{Allowed: true}
	}
	c := d.dial()
	c.send(good("1"))
	<-entered
	c.send(good("2"))
	c.send(good("3"))
	arrival(<-d.conns)
	close(sent)
	for _, uid := range []string{"1", "2", "3"} {
		c.isAllowed(c.answer(), uid)
	}
	d.isUndone()
}

// An answer that does not go out whole is not delivered: the caller does not read it in
// time, or the end of the process cuts it.
func TestCallerDoesNotRead(t *testing.T) {
	begin := func(t *testing.T, timeout string, write time.Duration) *delivery {
		d := newSlowDelivery(t, chain.StageTransactional, write)
		decided := make(chan struct{})
		d.decided = func(_ dispatcher.Request, v *dispatcher.Verdict) {
			v.Response.Patch = make([]byte, 12<<20)
			close(decided)
		}
		d.dial().send(message{target: "/v1/clusters/a/validate?timeout=" + timeout, body: review("1")})
		<-decided
		return d
	}
	t.Run("in time", func(t *testing.T) { begin(t, "400ms", time.Minute).isUndone("1") })
	t.Run("in the time of one write", func(t *testing.T) {
		d := begin(t, "30s", 300*time.Millisecond)
		d.eventually("the connection is cut", func() bool { return d.server.Connections() == 0 })
		d.isUndone("1")
	})
	t.Run("before the end", func(t *testing.T) {
		d := begin(t, "10s", time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = d.server.Shutdown(ctx)
		d.isUndone("1")
	})
}

// A caller that has given up by its timeout gets no allow that is then undone. Where
// nothing depends on it, the answer is written, whoever reads it.
func TestLateAnswer(t *testing.T) {
	for _, stage := range []chain.Stage{chain.StageTransactional, chain.StageValidating} {
		d := newDelivery(t, stage)
		d.decided = func(req dispatcher.Request, _ *dispatcher.Verdict) {
			<-time.After(time.Until(req.Arrived.Add(400 * time.Millisecond)))
		}
		c := d.dial()
		c.send(message{target: "/v1/clusters/a/validate?timeout=400ms", body: review("1")})
		if stage == chain.StageValidating {
			c.isAllowed(c.answer(), "1")
			d.isUndone()
			continue
		}
		c.isClosed()
		d.isUndone("1")
	}
}

// A Verdict that a panic replaces is not delivered, wherever the panic is.
func TestPanicAfterTheVerdict(t *testing.T) {
	for name, change := range map[string]func(*delivery){
		"in an observer":     func(d *delivery) { d.observe = func() { panic("observer") } },
		"behind the Decider": func(d *delivery) { d.decided = func(dispatcher.Request, *dispatcher.Verdict) { panic("decider") } },
		"in the encoding": func(d *delivery) {
			d.decided = func(_ dispatcher.Request, v *dispatcher.Verdict) {
				v.Response.Patch = []byte("[]")
				(*[3]int)(unsafe.Pointer(&v.Response.Patch))[1] = 1 << 62 // longer than there is memory
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDelivery(t, chain.StageTransactional)
			change(d)
			c := d.dial()
			if got := c.ask(good("1")); strings.Contains(got.body, `"allowed":true`) {
				t.Errorf("answer %q", got.body)
			}
			d.isUndone("1")
		})
	}
}
