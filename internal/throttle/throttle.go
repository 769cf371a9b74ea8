// SPDX-License-Identifier: Apache-2.0

// Package throttle keeps what strangers or broken peers can cause from filling a log.
package throttle

import (
	"sync"
	"time"
)

// At most Burst records of a kind pass in Window, unless a Throttle has its own.
const (
	Window = 10 * time.Second
	Burst  = 5
)

// Throttle lets a few records through and counts the others. The zero value is ready.
// It is safe for concurrent use.
type Throttle struct {
	Burst  int           // in each Window; 0: the constant
	Window time.Duration // 0: the constant

	mu              sync.Mutex
	start           time.Time
	passed, dropped int
}

// Pass reports whether a record may pass at now, and how many were dropped
// before it since the last that passed.
func (t *Throttle) Pass(now time.Time) (dropped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	burst, window := t.Burst, t.Window
	if burst == 0 {
		burst = Burst
	}
	if window == 0 {
		window = Window
	}
	if now.Sub(t.start) >= window {
		t.start, t.passed = now, 0
	}
	if t.passed >= burst {
		t.dropped++
		return 0, false
	}
	t.passed++
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}

// silence is after how long without a record a count is not worth telling any more.
const silence = time.Hour

// idle reports whether t has nothing to tell, and lets the next record pass.
func (t *Throttle) idle(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := now.Sub(t.start)
	return since >= max(t.Window, silence) || t.dropped == 0 && since >= max(t.Window, Window)
}

// PerCluster is a Throttle for each cluster, so that what one causes takes nothing
// from the others. The zero value is ready. It is safe for concurrent use.
type PerCluster struct {
	Burst  int           // as in Throttle
	Window time.Duration // as in Throttle

	mu    sync.Mutex
	each  map[string]*Throttle
	swept time.Time
	rest  Throttle // of the clusters beyond maxClusters
}

// maxClusters is how many clusters have a Throttle of their own at a time.
const maxClusters = 10_000

// Pass is Throttle.Pass for a record of a cluster.
func (p *PerCluster) Pass(cluster string, now time.Time) (dropped int, ok bool) {
	return p.of(cluster, now).Pass(now)
}

func (p *PerCluster) of(cluster string, now time.Time) *Throttle {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.each[cluster]; t != nil {
		return t
	}
	if len(p.each) >= maxClusters && now.Sub(p.swept) >= Window {
		p.swept = now
		for name, t := range p.each {
			if t.idle(now) {
				delete(p.each, name)
			}
		}
	}
	if len(p.each) >= maxClusters {
		p.rest.Burst, p.rest.Window = p.Burst, p.Window
		return &p.rest
	}
	if p.each == nil {
		p.each = map[string]*Throttle{}
	}
	t := &Throttle{Burst: p.Burst, Window: p.Window}
	p.each[cluster] = t
	return t
}
