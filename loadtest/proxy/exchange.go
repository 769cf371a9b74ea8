// SPDX-License-Identifier: Apache-2.0

package proxy

import "net"

// traffic is where a connection is. It is guarded by the link's lock.
type traffic struct {
	handshake handshake
	exchange  uint64 // from 1; 0 before the first
	request   int    // bytes of this exchange's request
	response  int    // bytes of its response
	received  int    // bytes of the target's on this connection
	halved    bool   // the client was told that nothing more comes
}

// passage is a run of bytes of one exchange, or of none, on its way.
type passage struct {
	bytes    []byte
	fault    *Fault // nil if the exchange is spared
	exchange uint64
	before   int  // bytes of the request, or the response, before these
	halved   bool // nobody waits for a response
}

// first reports whether the passage begins its request or response.
func (p *passage) first() bool { return p.before == 0 }

// at returns where the nth byte, counted from 1, of the request or response is.
func (p *passage) at(n int) (i int, ok bool) {
	i = n - 1 - p.before
	return i, n > 0 && i < len(p.bytes)
}

// clip is at for a place that may have gone by already.
func clip(i int) int { return max(i, 0) }

// passRequest passes bytes of the client's on.
func (l *link) passRequest(b []byte) error {
	f := l.proxy.fault.Load()
	if f.Silent && f.hitsConnection(l.number) {
		l.mute()
	}
	if l.muted.Load() {
		return nil
	}
	n, p := l.ask(b)
	if n > 0 {
		if err := l.toTarget(b[:n]); err != nil {
			return err
		}
	}
	if len(p.bytes) == 0 {
		return nil
	}
	if p.fault == nil {
		return l.toTarget(p.bytes)
	}
	return l.hurtRequest(&p)
}

// ask splits b into the end of a handshake, of n bytes, and a request's.
func (l *link) ask(b []byte) (n int, p passage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = l.handshake.take(b)
	if n == len(b) {
		return n, p
	}
	if l.exchange == 0 || l.response > 0 {
		l.exchange++
		l.request, l.response = 0, 0
	}
	p = passage{bytes: b[n:], fault: l.spare(), exchange: l.exchange, before: l.request}
	l.request += len(p.bytes)
	return n, p
}

// spare returns the Fault unless the exchange is spared.
func (l *link) spare() *Fault {
	if f := l.proxy.fault.Load(); f.hitsExchange(l.number, l.exchange) {
		return f
	}
	return nil
}

func (l *link) hurtRequest(p *passage) error {
	if p.first() {
		if err := l.hurtBeginning(p); err != nil {
			return err
		}
	}
	if i, ok := p.at(p.fault.ResetAtRequest); ok {
		l.count()
		err := l.toTarget(p.bytes[:clip(i)])
		l.reset()
		return err
	}
	return l.toTarget(p.bytes)
}

func (l *link) hurtBeginning(p *passage) error {
	if p.fault.CloseIdle && p.exchange > 1 {
		l.count()
		l.end()
		return net.ErrClosed
	}
	if p.fault.HalfClose {
		l.count()
		l.mu.Lock()
		l.halved = true
		l.mu.Unlock()
		_ = l.client.CloseWrite() // it may have left already
	}
	if p.fault.RequestDelay > 0 {
		l.count()
		return l.pause(p.fault.RequestDelay)
	}
	return nil
}

// passAnswer passes bytes of the target's on.
func (l *link) passAnswer(b []byte) error {
	f := l.proxy.fault.Load()
	if f.Silent && f.hitsConnection(l.number) {
		l.mute()
	}
	if l.muted.Load() {
		return nil
	}
	p, stalled := l.answer(b, f)
	err := l.deliver(&p)
	if stalled {
		l.mute()
	}
	return err
}

// answer takes stock of b, and cuts it where the connection stalls.
func (l *link) answer(b []byte, f *Fault) (p passage, stalled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.StallAt > 0 && l.received+len(b) >= f.StallAt && f.hitsConnection(l.number) {
		b, stalled = b[:clip(f.StallAt-1-l.received)], true
	}
	l.received += len(b)
	p = passage{bytes: b, exchange: l.exchange, before: l.response, halved: l.halved}
	if l.exchange > 0 {
		p.fault = l.spare()
		l.response += len(b)
	}
	return p, stalled
}

func (l *link) deliver(p *passage) error {
	if len(p.bytes) == 0 || p.halved {
		return nil
	}
	if p.fault == nil {
		return l.toClient(p.bytes)
	}
	return l.hurtResponse(p)
}

func (l *link) hurtResponse(p *passage) error {
	if p.first() && p.fault.ResponseDelay > 0 {
		l.count()
		if err := l.pause(p.fault.ResponseDelay); err != nil {
			return err
		}
	}
	if i, ok := p.at(p.fault.CorruptAt); ok && i >= 0 {
		l.count()
		p.bytes[i] = ^p.bytes[i]
	}
	if i, ok := p.at(p.fault.ResetAtResponse); ok {
		l.count()
		err := l.trickle(p.fault.Trickle, p.bytes[:clip(i)])
		l.reset()
		return err
	}
	if i, ok := p.at(p.fault.CutAt); ok {
		err := l.trickle(p.fault.Trickle, p.bytes[:clip(i)])
		l.cut()
		return err
	}
	return l.trickle(p.fault.Trickle, p.bytes)
}

// trickle writes drop by drop; a zero rate writes all at once.
func (l *link) trickle(rate Trickle, b []byte) error {
	if rate.Bytes == 0 {
		return l.toClient(b)
	}
	l.count()
	for len(b) > 0 {
		k := min(rate.Bytes, len(b))
		if err := l.toClient(b[:k]); err != nil {
			return err
		}
		if b = b[k:]; len(b) == 0 {
			return nil
		}
		if err := l.pause(rate.Every); err != nil {
			return err
		}
	}
	return nil
}
