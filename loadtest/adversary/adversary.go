// SPDX-License-Identifier: Apache-2.0

// Package adversary plays those who mean harm: clusters, their users and
// strangers that hold or send whatever costs the dispatcher most. An Attack goes
// on for as long as its context; others' calls show what it has done.
package adversary

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/load"
)

// Target is what is attacked, and as whom.
type Target struct {
	Address string      // host:port of the dispatcher
	Cluster string      // whose paths are called
	TLS     *tls.Config // with the certificate of the cluster, or with none
}

// Tally is how far an attack got.
type Tally struct {
	Connections atomic.Int64 // that were made
	Requests    atomic.Int64 // that were sent, in whole or in part
	Longest     atomic.Int64 // nanoseconds that the dispatcher has borne with a head or body that came slowly
}

// Attack goes on until ctx ends, and has left nothing behind when it returns.
type Attack func(ctx context.Context, t Target, tally *Tally)

// How long an attacker waits after a connection that failed or was closed: one that
// sends, so that it costs the dispatcher more than the machine; one that holds
// connections, so that it does not spend the processors on handshakes instead.
const (
	pause = 20 * time.Millisecond
	rest  = time.Second
)

// hold keeps n connections, each made by dial and living as live says, and makes
// those anew that end, after a pause. They are closed when ctx ends.
func hold(ctx context.Context, n int, pause time.Duration, tally *Tally, dial func(context.Context) (net.Conn, error), live func(net.Conn) error) {
	one := func() error {
		conn, err := dial(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		tally.Connections.Add(1)
		return live(conn)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = one() // whatever ends a connection, the next one follows
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	wg.Wait()
}

// connect connects and does not shake hands.
func (t Target) connect(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	return d.DialContext(ctx, "tcp", t.Address)
}

// handshake connects and shakes hands.
func (t Target) handshake(ctx context.Context) (net.Conn, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, t.TLS)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// bearsWith notes for how long a request that began then was borne with.
func (tally *Tally) bearsWith(begin time.Time) {
	took := int64(time.Since(begin))
	for most := tally.Longest.Load(); took > most && !tally.Longest.CompareAndSwap(most, took); {
		most = tally.Longest.Load()
	}
}

// request counts and sends the parts of a request, and waits for what comes.
func (tally *Tally) request(conn net.Conn, parts ...[]byte) error {
	tally.Requests.Add(1)
	for _, part := range parts {
		if _, err := conn.Write(part); err != nil {
			return err
		}
	}
	return drain(conn)
}

// drain reads until the other side closes.
func drain(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	return err
}

// Strangers hold n connections and never shake hands.
func Strangers(n int) Attack {
	return func(ctx context.Context, t Target, tally *Tally) {
		hold(ctx, n, pause, tally, t.connect, drain)
	}
}

// Silent holds n connections that have shaken hands and send no request.
func Silent(n int) Attack {
	return func(ctx context.Context, t Target, tally *Tally) {
		hold(ctx, n, rest, tally, t.handshake, drain)
	}
}

// head is that of a request with a body of size bytes.
func (t Target) head(size int, more string) string {
	return fmt.Sprintf("POST /v1/clusters/%s/validate?timeout=30s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n", t.Cluster, t.Address, size, more)
}

// part sends requests on n connections that are cut short where they have sent
// sent bytes of their body of size, and waits on each for what comes.
func part(n, size, sent int) Attack {
	body := bytes.Repeat([]byte(" "), sent)
	return func(ctx context.Context, t Target, tally *Tally) {
		hold(ctx, n, pause, tally, t.handshake, func(conn net.Conn) error { return tally.request(conn, []byte(t.head(size, "")), body) })
	}
}

// Announce has n requests announce a body of size bytes and sends one of them.
func Announce(n, size int) Attack { return part(n, size, 1) }

// Withhold has n requests send all but the last byte of a body of size bytes.
func Withhold(n, size int) Attack { return part(n, size, size-1) }

// Bomb has n connections send bodies that are size bytes when they are
// decompressed, one after the other.
func Bomb(n, size int) Attack {
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is a good one
	_, _ = io.Copy(w, io.LimitReader(blanks{}, int64(size)))   // memory takes everything
	_ = w.Close()
	return func(ctx context.Context, t Target, tally *Tally) {
		request := append([]byte(t.head(zipped.Len(), "Content-Encoding: gzip\r\nConnection: close\r\n")), zipped.Bytes()...)
		hold(ctx, n, pause, tally, t.handshake, func(conn net.Conn) error { return tally.request(conn, request) })
	}
}

// blanks is white space without end.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Drip sends a byte of a request every interval on n connections: half of them in
// the header, the others in the body.
func Drip(n int, interval time.Duration) Attack {
	return func(ctx context.Context, t Target, tally *Tally) {
		var turn atomic.Int64
		hold(ctx, n, pause, tally, t.handshake, func(conn net.Conn) error {
			tally.Requests.Add(1)
			defer tally.bearsWith(time.Now())
			request := t.head(1<<20, "")
			if turn.Add(1)%2 == 0 {
				if _, err := io.WriteString(conn, request); err != nil {
					return err
				}
				request = strings.Repeat(" ", 1<<20)
			}
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for i := range len(request) {
				if _, err := io.WriteString(conn, request[i:i+1]); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-tick.C:
				}
			}
			return nil
		})
	}
}

// Stall has n connections send size bytes of a head that has no end.
func Stall(n, size int) Attack {
	field := strings.Repeat("x", size)
	return func(ctx context.Context, t Target, tally *Tally) {
		hold(ctx, n, rest, tally, t.handshake, func(conn net.Conn) error {
			defer tally.bearsWith(time.Now())
			return tally.request(conn, []byte(strings.TrimSuffix(t.head(1, "X-Stall: "+field), "\r\n")))
		})
	}
}

// Deaf sends a whole request every interval on each of n connections, and reads no
// answer.
func Deaf(n int, interval time.Duration) Attack {
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"deaf","operation":"CREATE",` +
		`"kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},"namespace":"shop","object":{}}}`
	return func(ctx context.Context, t Target, tally *Tally) {
		request := t.head(len(review), "") + review
		hold(ctx, n, pause, tally, t.handshake, func(conn net.Conn) error {
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for {
				tally.Requests.Add(1)
				if _, err := io.WriteString(conn, request); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-tick.C:
				}
			}
		})
	}
}

// Flood makes admissions as the load says, but for its address, clusters and
// duration, and takes no interest in the answers.
func Flood(cfg load.Config) Attack {
	return func(ctx context.Context, t Target, tally *Tally) {
		cfg.Address, cfg.Clusters, cfg.Duration = t.Address, []load.Cluster{{Name: t.Cluster, TLS: t.TLS}}, time.Hour
		calls := load.Run(ctx, cfg)
		tally.Requests.Add(int64(len(calls)))
	}
}
