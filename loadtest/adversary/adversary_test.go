// SPDX-License-Identifier: Apache-2.0

package adversary

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// victim is a server that says what each connection brought.
type victim struct {
	net.Listener
	saw chan visit
}

// visit is one connection until it has sent a request, or nothing more comes.
type visit struct {
	shook bool // hands
	head  *http.Request
	body  int // bytes of it that came
	came  int // bytes in all
}

// newVictim serves until the test ends. The conduct of an attack is seen by what it
// has sent when it has been silent for a moment.
func newVictim(t *testing.T) (*victim, Target) {
	t.Helper()
	authority, err := pki.NewAuthority("adversary")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.OnLoopback("victim"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{Listener: ln, saw: make(chan visit, 1024)}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	done := make(chan struct{})
	var open sync.WaitGroup
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			open.Go(func() { v.receive(tls.Server(conn, config)) })
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
		open.Wait() // connections end with their attack
	})
	return v, Target{Address: ln.Addr().String(), Cluster: "east", TLS: &tls.Config{InsecureSkipVerify: true}}
}

const silence = 200 * time.Millisecond

func (v *victim) receive(conn *tls.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(silence))
	var seen visit
	if seen.shook = conn.Handshake() == nil; seen.shook {
		_ = conn.SetDeadline(time.Now().Add(silence))
		var came counter
		if r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &came))); err == nil {
			seen.head = r
			n, _ := io.Copy(io.Discard, r.Body) // what came of it
			seen.body = int(n)
		}
		seen.came = int(came)
	}
	select {
	case v.saw <- seen:
	default:
	}
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Each attack does what it is named after.
func TestAttacks(t *testing.T) {
	const size = 64 << 10
	for name, c := range map[string]struct {
		attack Attack
		is     func(visit) error
	}{
		"Strangers": {Strangers(3), func(v visit) error { return when(v.shook, "it shook hands") }},
		"Silent":    {Silent(3), func(v visit) error { return when(!v.shook || v.head != nil, "no handshake, or a request") }},
		"Announce": {Announce(3, size), func(v visit) error {
			return when(v.head == nil || v.head.ContentLength != size || v.body != 1, "not one byte of what was announced")
		}},
		"Withhold": {Withhold(3, size), func(v visit) error {
			return when(v.head == nil || v.head.ContentLength != size || v.body != size-1, "not all but one byte")
		}},
		"Bomb": {Bomb(3, 1<<20), func(v visit) error {
			return when(v.head == nil || v.head.Header.Get("Content-Encoding") != "gzip" || v.body == 0 || v.body > 1<<20/100, "no bomb")
		}},
		"Stall": {Stall(3, 20<<10), func(v visit) error {
			return when(v.head != nil || v.came < 20<<10, "a whole head, or little of one")
		}},
		"Deaf": {Deaf(3, 10*time.Millisecond), func(v visit) error {
			return when(v.head == nil || int64(v.body) != v.head.ContentLength, "no whole request")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v, target := newVictim(t)
			ctx, cancel := context.WithCancel(t.Context())
			var tally Tally
			over := make(chan struct{})
			go func() {
				defer close(over)
				c.attack(ctx, target, &tally)
			}()
			for range 6 { // connections that end are made anew
				if err := c.is(<-v.saw); err != nil {
					t.Error(err)
				}
			}
			cancel()
			<-over
			if tally.Connections.Load() < 6 {
				t.Errorf("%d connections are counted", tally.Connections.Load())
			}
		})
	}
}

func when(wrong bool, what string) error {
	if wrong {
		return errors.New(what)
	}
	return nil
}
