// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Fault is what a Proxy does wrong. The zero Fault is none. Faults combine:
// those of the door decide who gets in, those of a connection what becomes of
// it, those of an exchange what becomes of one request and its answer.
//
// Bytes are counted from 1, and 0 is off: CutAt 1 lets no byte through. The
// bytes of a TLS handshake belong to no exchange. Session tickets do, once the
// first request is on its way: a server that is to be hurt at an exact byte
// sends none.
type Fault struct {
	// The door, for connections to come.
	Refuse    bool // nobody listens: ECONNREFUSED
	BlackHole bool // connection requests are dropped (Linux only)

	// Connections.
	Sever         bool // when the Fault is set, those that exist are reset
	ResetOnAccept bool // new ones are reset at once
	Silent        bool // nothing passes any more; of new ones the target hears nothing
	StallAt       int  // nothing passes from this byte of the target's on, handshake included

	// Exchanges. An exchange is a burst of the client's bytes and what the
	// target sends until the client's next.
	RequestDelay    time.Duration // the request is held back
	ResponseDelay   time.Duration // the response is held back
	Trickle         Trickle       // the response comes drop by drop
	CutAt           int           // FIN instead of this byte of the response
	CorruptAt       int           // all bits of this byte of the response are flipped
	ResetAtRequest  int           // RST on this byte of the request; those before it are delivered
	ResetAtResponse int           // RST instead of this byte of the response
	HalfClose       bool          // FIN to the client as it starts to ask; the request is delivered
	CloseIdle       bool          // a connection is closed as its second request, or a later one, comes

	// When.
	Flap  Flap    // the Fault comes and goes; zero is always
	Share float64 // of the connections, or exchanges, that are hit; 0 is all
	// PerConnection draws the share once for all exchanges of a connection.
	PerConnection bool
	// Seed decides who is in the share: the nth exchange of the nth connection
	// always meets the same fate.
	Seed uint64
}

// Trickle is a rate: so many bytes at a time, and so long between two times.
type Trickle struct {
	Bytes int
	Every time.Duration
}

// Flap says how long a Fault alternately spares everybody and then holds.
type Flap struct{ Up, Down time.Duration }

func (f *Fault) check() error {
	switch {
	case f.Refuse && f.BlackHole:
		return errors.New("refuse and black hole exclude each other")
	case min(f.StallAt, f.CutAt, f.CorruptAt, f.ResetAtRequest, f.ResetAtResponse, f.Trickle.Bytes) < 0:
		return errors.New("bytes are counted from 1")
	case min(f.RequestDelay, f.ResponseDelay, f.Trickle.Every, f.Flap.Up, f.Flap.Down) < 0:
		return errors.New("a time is negative")
	case (f.Flap.Up == 0) != (f.Flap.Down == 0):
		return errors.New("flapping takes a time up and a time down")
	case (f.Trickle.Bytes == 0) != (f.Trickle.Every == 0):
		return errors.New("trickling takes bytes and a time")
	case !(f.Share >= 0 && f.Share <= 1):
		return fmt.Errorf("a share is from 0 to 1, not %v", f.Share)
	}
	return nil
}

func (f *Fault) door() doorState {
	switch {
	case f.Refuse:
		return doorRefusing
	case f.BlackHole:
		return doorBlackHole
	}
	return doorOpen
}

// hitsConnection reports whether connection is in the share.
func (f *Fault) hitsConnection(connection uint64) bool { return f.draw(connection, 0) }

// hitsExchange reports whether an exchange, counted from 1, is in the share.
func (f *Fault) hitsExchange(connection, exchange uint64) bool {
	if f.PerConnection {
		exchange = 0
	}
	return f.draw(connection, exchange)
}

func (f *Fault) draw(connection, exchange uint64) bool {
	if f.Share == 0 {
		return true
	}
	return rand.New(rand.NewPCG(f.Seed, connection<<32|exchange)).Float64() < f.Share
}
