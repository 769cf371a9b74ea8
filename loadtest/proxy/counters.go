// SPDX-License-Identifier: Apache-2.0

package proxy

import "sync/atomic"

// Counters are what a Proxy has seen so far.
type Counters struct {
	Accepted uint64 // connections
	Open     int64  // connections, at this moment
	ToTarget uint64 // bytes
	ToClient uint64 // bytes
	Faults   uint64 // done to a connection or an exchange; the door counts none
}

type counts struct {
	accepted, toTarget, toClient, faults atomic.Uint64
	open                                 atomic.Int64
}

// Counters returns the counters as of now.
func (p *Proxy) Counters() Counters {
	return Counters{
		Accepted: p.counts.accepted.Load(),
		Open:     p.counts.open.Load(),
		ToTarget: p.counts.toTarget.Load(),
		ToClient: p.counts.toClient.Load(),
		Faults:   p.counts.faults.Load(),
	}
}
