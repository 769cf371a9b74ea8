// SPDX-License-Identifier: Apache-2.0

// Package decisionlog keeps a record of every decision in a file of JSON lines.
package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/logging"
	"github.com/admission-dispatcher/dispatcher/internal/share"
)

// Config is the configuration of a DecisionLog.
type Config struct {
	Out     io.WriteCloser // takes whole lines; closed with the log
	Allows  bool           // plain allows are written, too
	Objects bool           // objects and options are written, masked, and userInfo.extra
	Mask    []string       // paths in objects, as the configuration says
}

const (
	maxLines = 4096     // that may wait
	maxBytes = 64 << 20 // of objects, in those
)

// Log writes a line for each decision. It is a dispatcher.Observer that
// never waits: what the sink does not take in time is given up and counted. The
// clusters share the lines and bytes that may wait.
type Log struct {
	cfg     Config
	mask    mask
	entries chan entry
	lines   *share.Pool // in entries
	bytes   *share.Pool // of objects in those
	dropped atomic.Int64
	done    chan struct{}

	mu     sync.RWMutex // held for writing by Close alone
	closed bool
}

// entry is a Decision with its objects as they were sent.
type entry struct {
	decision             *Line
	object, old, options []byte // copies
	secret               bool   // the first two are Secrets
}

// New returns a DecisionLog and starts to write. Who makes it closes it.
// The error is about cfg.Mask.
func New(cfg Config) (*Log, error) {
	m, err := newMask(cfg.Mask)
	if err != nil {
		return nil, err
	}
	l := &Log{
		cfg:     cfg,
		mask:    m,
		entries: make(chan entry, maxLines),
		lines:   share.NewPool(maxLines),
		bytes:   share.NewPool(maxBytes),
		done:    make(chan struct{}),
	}
	go l.run()
	return l, nil
}

// Observe implements dispatcher.Observer.
func (l *Log) Observe(ctx context.Context, r *dispatcher.Record) {
	if !l.cfg.Allows && r.Verdict.Decision() == dispatcher.DecisionAllowed {
		return
	}
	v, size := r.Review, int64(0)
	objects := l.cfg.Objects && !r.Verdict.Unreadable // else it is not known whether it is a Secret
	if objects {
		size = int64(len(v.Object.Raw) + len(v.OldObject.Raw) + len(v.Options))
	}
	if !l.take(r.Cluster.Name, size) {
		l.dropped.Add(1)
		return
	}
	e := entry{decision: newLine(ctx, r)}
	if objects {
		e.secret = string(v.Resource.Resource) == "secrets"
		e.object, e.old, e.options = bytes.Clone(v.Object.Raw), bytes.Clone(v.OldObject.Raw), bytes.Clone(v.Options)
		e.decision.addExtra(v.User.Extra)
	}
	if !l.offer(e) {
		l.give(&e)
		l.dropped.Add(1)
	}
}

// take reports whether the cluster may have one more line wait, with so many bytes.
func (l *Log) take(cluster string, size int64) bool {
	if !l.lines.Take(cluster, 1, 0) {
		return false
	}
	if !l.bytes.Take(cluster, size, 0) {
		l.lines.Give(cluster, 1)
		return false
	}
	return true
}

// give gives back what the line of e took.
func (l *Log) give(e *entry) {
	l.lines.Give(e.decision.Cluster, 1)
	l.bytes.Give(e.decision.Cluster, e.size())
}

func (e *entry) size() int64 { return int64(len(e.object) + len(e.old) + len(e.options)) }

// offer reports whether there was room.
func (l *Log) offer(e entry) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return false
	}
	select {
	case l.entries <- e:
		return true
	default:
		return false
	}
}

// run writes until Close.
func (l *Log) run() {
	defer close(l.done)
	for e := range l.entries {
		l.give(&e)
		line, err := l.line(e)
		if err == nil {
			_, err = l.cfg.Out.Write(line)
		}
		if err != nil {
			l.dropped.Add(1)
		}
	}
	_ = l.cfg.Out.Close()
}

func (l *Log) line(e entry) ([]byte, error) {
	e.decision.Request.Object = l.mask.apply(e.object, e.secret)
	e.decision.Request.OldObject = l.mask.apply(e.old, e.secret)
	e.decision.Request.Options = l.mask.apply(e.options, false)
	line, err := json.Marshal(e.decision)
	return append(line, '\n'), err
}

// Dropped returns how many lines were given up.
func (l *Log) Dropped() int64 {
	if l == nil {
		return 0
	}
	return l.dropped.Load()
}

// Close takes no more and waits until what is there is written, but not for a
// sink that is blocked.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.entries)
	}
	l.mu.Unlock()
	timer := time.NewTimer(logging.CloseTimeout)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}
