// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// chunk is how many bytes are passed on at a time.
const chunk = 32 << 10

// link is a client's connection and the one to the target that goes with it.
type link struct {
	proxy  *Proxy
	number uint64 // of the connection, from 1
	client *net.TCPConn
	done   chan struct{} // closed at the end
	ending sync.Once

	// muted: whatever comes from either side is thrown away, until the client
	// leaves.
	muted atomic.Bool

	mu     sync.Mutex
	target *net.TCPConn // nil until dialled, or where it is not
	traffic
}

func newLink(p *Proxy, client *net.TCPConn, number uint64) *link {
	return &link{proxy: p, number: number, client: client, done: make(chan struct{})}
}

// run carries bytes until both sides have said all, or the link is ended.
func (l *link) run() {
	l.proxy.counts.open.Add(1)
	defer l.proxy.counts.open.Add(-1)
	defer l.end()
	f := l.proxy.fault.Load()
	hit := f.hitsConnection(l.number)
	switch {
	case hit && f.ResetOnAccept:
		l.count()
		l.reset()
	case hit && f.Silent:
		l.mute()
		_, _ = io.Copy(io.Discard, l.client)
	case l.dial():
		var answers sync.WaitGroup
		answers.Go(l.pumpAnswers)
		l.pumpRequests()
		answers.Wait()
	default:
		l.reset() // as near to a refusal as an accepted connection gets
	}
}

func (l *link) dial() bool {
	c, err := new(net.Dialer).DialContext(l.proxy.context, "tcp", l.proxy.target())
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = c.(*net.TCPConn)
	select {
	case <-l.done: // ended meanwhile, with nothing to close
		_ = l.target.Close()
		return false
	default:
		return true
	}
}

func (l *link) pumpRequests() {
	err := pump(l.client, l.passRequest)
	switch {
	case errors.Is(err, io.EOF) && !l.muted.Load():
		_ = l.target.CloseWrite() // it may have left already
	default:
		l.end()
	}
}

func (l *link) pumpAnswers() {
	err := pump(l.target, l.passAnswer)
	switch {
	case l.muted.Load():
	case errors.Is(err, io.EOF):
		_ = l.client.CloseWrite() // it may have left already
	case errors.Is(err, syscall.ECONNRESET):
		l.reset()
	default:
		l.end()
	}
}

// pump hands what it reads to pass until either fails.
func pump(from io.Reader, pass func([]byte) error) error {
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if err := pass(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// toTarget and toClient write, and count what was written.
func (l *link) toTarget(b []byte) error {
	n, err := l.target.Write(b)
	l.proxy.counts.toTarget.Add(uint64(n))
	return err
}

func (l *link) toClient(b []byte) error {
	n, err := l.client.Write(b)
	l.proxy.counts.toClient.Add(uint64(n))
	return err
}

// pause waits, and fails if the link ends meanwhile.
func (l *link) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.done:
		return net.ErrClosed
	}
}

func (l *link) count() { l.proxy.counts.faults.Add(1) }

// mute stops all traffic. The client notices nothing but the silence.
func (l *link) mute() {
	if !l.muted.Swap(true) {
		l.count()
	}
}

// cut ends the answers with a FIN. The client may still send.
func (l *link) cut() {
	l.mute()
	_ = l.client.CloseWrite() // it may have left already
}

// reset ends the link with a RST to the client.
func (l *link) reset() {
	_ = l.client.SetLinger(0) // fails on a closed connection only
	l.end()
}

func (l *link) end() {
	l.ending.Do(func() {
		close(l.done)
		_ = l.client.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.target != nil {
			_ = l.target.Close()
		}
	})
}
