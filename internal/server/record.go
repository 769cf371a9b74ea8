// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// records logs what goes wrong before a request is an admission; admissions are
// recorded by the dispatcher. Each kind of record is throttled, because a stranger
// must not be able to fill the disk, nor to keep a cluster's records out of it. All
// are counted. Neither bodies nor credentials are logged.
type records struct {
	log         *slog.Logger
	observer    Observer
	refusals    [refusals]throttle.PerCluster
	strangers   [refusals]throttle.Throttle // refusals of nobody that is known
	accepts     throttle.Throttle
	connections throttle.PerCluster
	crowds      throttle.Throttle // connections of strangers
	handshakes  throttle.Throttle
	registered  throttle.PerCluster
}

// of returns how records of one cluster are throttled.
func of(p *throttle.PerCluster, cluster string) func(time.Time) (dropped int, ok bool) {
	return func(now time.Time) (int, bool) { return p.Pass(cluster, now) }
}

// refused records a request that is turned away; attrs say whose it is. from is nil where that is nobody.
func (r *records) refused(attrs []slog.Attr, from *chain.Cluster, why refusal, text string) {
	pass, cluster := r.strangers[why].Pass, ""
	if from != nil {
		cluster = from.Name
		pass = of(&r.refusals[why], cluster)
		attrs = append(attrs, slog.String("cluster", cluster))
	}
	r.observer.TurnedAway(cluster, why.String())
	status, _ := why.describe()
	r.warn(pass, "request refused", remedied(append(attrs, slog.Int("status", status), slog.String("reason", text)), why.remedy())...)
}

// sender says where a request comes from and, if its headers could be read,
// where it wants to go.
func sender(ctx *fasthttp.RequestCtx, h *head) []slog.Attr {
	attrs := []slog.Attr{slog.String("remote", ctx.RemoteAddr().String())}
	if len(h.method) > 0 {
		attrs = append(attrs, slog.String("method", cut(string(h.method))), slog.String("path", cut(printedPath(h.path))))
	}
	if leaf := connOf(ctx).chains.Leaf(); leaf != nil {
		attrs = append(attrs, slog.String("certificate", cut(leaf.Subject.String())))
	}
	return attrs
}

// outdated records a call to a path that the cluster's registration no longer has.
// It is served; the dispatcher counts it.
func (r *records) outdated(c *chain.Cluster, phase chain.Phase) {
	r.warn(of(&r.registered, c.Name), "the cluster applies an older registration", slog.String("cluster", c.Name), slog.String("phase", phase.String()))
}

func (r *records) handshakeFailed(remote net.Addr, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return // a TCP health check, or evicted, which has a record of its own
	}
	r.observer.TurnedAway("", badHandshake)
	r.warn(r.handshakes.Pass, "TLS handshake failed",
		remedied([]slog.Attr{slog.String("remote", remote.String()), slog.String("error", cut(err.Error()))}, handshakeRemedy(err))...)
}

// Why a connection makes way for another.
const (
	tooManyOpen  = "connection closed: too many are open"
	tooManyHeads = "connection closed: too many are amid the head of a request"
)

// connectionClosed records that a connection is closed for another; cluster is
// whose it was, "" for a stranger's.
func (r *records) connectionClosed(cluster string, remote net.Addr, why string, limit int) {
	r.observer.TurnedAway(cluster, tooManyConnections)
	pass, attrs := r.crowds.Pass, []slog.Attr{slog.String("remote", remote.String()), slog.Int("limit", limit)}
	if cluster != "" {
		pass = of(&r.connections, cluster)
		attrs = append(attrs, slog.String("cluster", cluster))
	}
	r.warn(pass, why, attrs...)
}

func (r *records) acceptFailed(err error) {
	r.warn(r.accepts.Pass, "cannot accept connections", slog.String("error", err.Error()))
}

// panicked is not throttled: each is a bug of ours.
func (r *records) panicked(value any, stack []byte) {
	r.log.Error("panic while handling a request",
		slog.String("panic", crash.Text(value)), slog.String("stack", string(stack)))
}

func (r *records) warn(pass func(now time.Time) (dropped int, ok bool), message string, attrs ...slog.Attr) {
	dropped, ok := pass(time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("dropped", dropped))
	}
	r.log.LogAttrs(context.Background(), slog.LevelWarn, message, attrs...)
}

func cut(s string) string { return s[:min(len(s), maxQuoted)] }
