// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// records logs what goes wrong before a request is an admission; admissions are
// recorded by the dispatcher. Each kind of record is throttled: a stranger must
// not be able to fill the disk. Neither bodies nor credentials are logged.
type records struct {
	log         *slog.Logger
	refusals    [refusals]throttle
	accepts     throttle
	connections throttle
	handshakes  throttle
}

func (r *records) refused(ctx *fasthttp.RequestCtx, why refusal, text string) {
	path, _ := splitURI(ctx.Request.Header.RequestURI())
	r.warn(&r.refusals[why], "request refused",
		slog.String("reason", text),
		slog.Int("status", ctx.Response.StatusCode()),
		slog.String("remote", ctx.RemoteAddr().String()),
		slog.String("method", cut(string(ctx.Method()))),
		slog.String("path", cut(string(path))))
}

func (r *records) handshakeFailed(remote net.Addr, err error) {
	if errors.Is(err, io.EOF) {
		return // a TCP health check
	}
	r.warn(&r.handshakes, "TLS handshake failed",
		slog.String("remote", remote.String()), slog.String("error", cut(err.Error())))
}

func (r *records) tooManyConnections(remote net.Addr, limit int) {
	r.warn(&r.connections, "connection closed: too many are open",
		slog.String("remote", remote.String()), slog.Int("limit", limit))
}

func (r *records) acceptFailed(err error) {
	r.warn(&r.accepts, "cannot accept connections", slog.String("error", err.Error()))
}

// panicked is not throttled: each is a bug of ours.
func (r *records) panicked(value any, stack []byte) {
	r.log.Error("panic while handling a request",
		slog.String("panic", cut(fmt.Sprint(value))), slog.String("stack", string(stack)))
}

func (r *records) warn(t *throttle, message string, attrs ...slog.Attr) {
	dropped, ok := t.pass(time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("dropped", dropped))
	}
	r.log.LogAttrs(context.Background(), slog.LevelWarn, message, attrs...)
}

func cut(s string) string { return s[:min(len(s), maxQuoted)] }

// At most throttleBurst records of a kind pass in throttleWindow.
const (
	throttleWindow = 10 * time.Second
	throttleBurst  = 5
)

// throttle lets a few records through and counts the others.
type throttle struct {
	mu              sync.Mutex
	start           time.Time
	passed, dropped int
}

// pass reports whether a record may pass at now, and how many were dropped
// before it since the last that passed.
func (t *throttle) pass(now time.Time) (dropped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.start) >= throttleWindow {
		t.start, t.passed = now, 0
	}
	if t.passed == throttleBurst {
		t.dropped++
		return 0, false
	}
	t.passed++
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}
