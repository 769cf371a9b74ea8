// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// handle is the journey of one admission. fasthttp has read the head and nothing
// else on purpose: what can be refused for it is, before the body. When handle
// returns fasthttp writes the answer.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	var h head
	defer s.contain(ctx, &h)
	c := connOf(ctx)
	in := intake{buffers: s.memory.buffers, data: c.takeOver(ctx)}
	defer in.drop()
	h, r := s.readHead(&ctx.Request.Header)
	if r != accepted {
		s.refuse(ctx, &h, r)
		return
	}
	snapshot := s.cfg.Snapshot()
	if snapshot == nil {
		s.refuse(ctx, &h, notReady)
		return
	}
	defer snapshot.Release()
	req, r := s.request(c, snapshot, &h)
	if r != accepted {
		s.refuse(ctx, &h, r)
		return
	}
	in.holder, in.limit, in.continues = s.memory.of(req.Cluster.Name), s.limit(req.Cluster), h.continues
	in.until = time.Now().Add(max(time.Millisecond, min(s.cfg.BodyTimeout, budget(h.timeout, 0, s.cfg.MaxTimeout))))
	if r := in.receive(c); r != accepted {
		s.incomplete(ctx, &h, req, in.data, r)
		return
	}
	if r := in.decompress(h.compression); r != accepted {
		s.incomplete(ctx, &h, req, in.data, r)
		return
	}
	body := in.body()
	defer body.Release()
	s.judge(ctx, &h, req, body)
}

// request says who asks for what, and until when.
func (s *Server) request(c *conn, snapshot *registry.Snapshot, h *head) (dispatcher.Request, refusal) {
	cluster := identify(snapshot, c, h)
	if cluster == nil || cluster.Name != string(h.route.cluster) {
		return dispatcher.Request{}, forbidden
	}
	if !c.belongTo(cluster.Name) {
		return dispatcher.Request{}, crowded
	}
	considered, current := cluster.Chain(h.route.phase).Path(h.route.segment)
	if !current {
		s.records.outdated(cluster, h.route.phase)
	}
	return dispatcher.Request{
		Cluster:  cluster,
		Phase:    h.route.phase,
		Path:     considered,
		Outdated: !current,
		Snapshot: snapshot.ShortHash(),
		Deadline: c.arrived.Add(budget(h.timeout, cluster.Timeout, s.cfg.MaxTimeout)),
		Delivery: &c.delivery,
		Arrived:  c.arrived,
		Host:     h.host,
	}, accepted
}

// limit returns how many bytes the body of a cluster's request may have.
func (s *Server) limit(cluster *chain.Cluster) int {
	if own := cluster.RequestBytes; own > 0 {
		return int(min(int64(s.cfg.BodyLimit), own))
	}
	return s.cfg.BodyLimit
}

// The part of a timeout that is kept for the way back, and its floor.
const (
	slackDivisor = 20 // 5 %
	minSlack     = 100 * time.Millisecond
)

// budget is how long an admission may take, from the arrival of its headers,
// when the caller asked for timeout (docs/semantics.md, Deadline). registered is
// the timeout under which the cluster registered us, 0 if unknown. A caller that
// asks for less than it registered has used up part of its time, and has rounded
// what is left up to a whole second.
func budget(timeout, registered, longest time.Duration) time.Duration {
	t := min(timeout, longest)
	t = max(0, t-max(minSlack, t/slackDivisor))
	if timeout < registered {
		t = max(t-time.Second, t/2)
	}
	return t
}

// incomplete answers a request whose body was not read to its end, but for data. Where
// its uid was, the answer is a denial: kube-apiserver's failurePolicy must not turn it
// into an allow. What still comes of the body is not another request.
func (s *Server) incomplete(ctx *fasthttp.RequestCtx, h *head, req dispatcher.Request, data []byte, r refusal) {
	req.Review = codec.AcquireReview()
	defer codec.ReleaseReview(req.Review)
	begun := codec.NewBody(data, nil)
	defer begun.Release()
	if !req.Review.DecodeHead(begun, h.encoding) {
		s.refuse(ctx, h, r)
		return
	}
	response := s.decline(s.traced(&ctx.Request.Header), req, r.defect())
	s.reply(ctx, req.Review, &response)
	ctx.SetConnectionClose()
	connOf(ctx).lingers.Store(true)
}

// judge answers the review in body.
func (s *Server) judge(ctx *fasthttp.RequestCtx, h *head, req dispatcher.Request, body *codec.Body) {
	req.Review = codec.AcquireReview()
	defer codec.ReleaseReview(req.Review)
	decode := req.Review.Decode
	if h.encoding == codec.Protobuf {
		decode = req.Review.DecodeProtobuf
	}
	if err := decode(body); err != nil {
		s.undecodable(ctx, h, req, err)
		return
	}
	response := s.decide(s.traced(&ctx.Request.Header), req)
	s.reply(ctx, req.Review, &response)
	connOf(ctx).answers(h.timeout)
}

// undecodable answers a body that is no admission. Where there is a uid to answer to
// the answer is a denial, as that of incomplete is.
func (s *Server) undecodable(ctx *fasthttp.RequestCtx, h *head, req dispatcher.Request, err error) {
	var request *codec.RequestError
	if !errors.As(err, &request) {
		_, text := notReview.describe()
		s.turnAway(ctx, h, notReview, text+": "+printable(detail(err)), text+": "+printable(err.Error()))
		return
	}
	response := s.decline(s.traced(&ctx.Request.Header), req, dispatcher.Defect{
		Code:    http.StatusBadRequest,
		Message: printable(request.Detail()),
		Logged:  printable(request.Error()),
	})
	s.reply(ctx, req.Review, &response)
}

// detail is what the caller reads of err; the log must do with less.
func detail(err error) string {
	if envelope, ok := errors.AsType[*codec.EnvelopeError](err); ok {
		return envelope.Detail()
	}
	return err.Error()
}

func (s *Server) decide(ctx context.Context, req dispatcher.Request) (response codec.Response) {
	defer s.deny(req, &response)
	return s.cfg.Decider.Dispatch(ctx, req).Response
}

func (s *Server) decline(ctx context.Context, req dispatcher.Request, defect dispatcher.Defect) (response codec.Response) {
	defer s.deny(req, &response)
	return s.cfg.Decider.Decline(ctx, req, defect).Response
}

// deny is deferred: a panic around a decision is a denial, not the end of the
// process. Of one inside of it the Decider itself makes a Verdict, and tells.
func (s *Server) deny(req dispatcher.Request, response *codec.Response) {
	value := recover()
	if value == nil {
		return
	}
	req.Delivery.Settle(false) // the caller gets another Verdict
	s.records.panicked(value, debug.Stack())
	s.records.observer.TurnedAway(req.Cluster.Name, panicked.String())
	*response = codec.Response{
		Code:    http.StatusInternalServerError,
		Reason:  "InternalError",
		Message: "Internal error occurred: the dispatcher failed",
	}
}

// contain ends a panic anywhere else in handle.
func (s *Server) contain(ctx *fasthttp.RequestCtx, h *head) {
	if value := recover(); value != nil {
		connOf(ctx).delivery.Settle(false) // perhaps there was a Verdict
		s.records.panicked(value, debug.Stack())
		s.refuse(ctx, h, panicked)
	}
}

// reply answers an admission in the encoding that it came in: always 200, whatever the verdict, because any
// other status is a failed call to kube-apiserver. It never sends Retry-After:
// kube-apiserver would hold the user's request and call again.
func (s *Server) reply(ctx *fasthttp.RequestCtx, review *codec.Review, response *codec.Response) {
	ctx.SetContentType(review.Encoding.ContentType())
	body := ctx.Response.SwapBody(nil)
	ctx.Response.SwapBody(review.AppendAnswer(body[:0], response))
	aged := connOf(ctx).isAged()
	if aged {
		s.aged.Add(1)
	}
	if aged || s.lame.Load() {
		ctx.SetConnectionClose()
	}
}

// traced returns the context of an admission: shutdown, and the caller's trace, if its
// headers have one that is valid (W3C Trace Context). Baggage is not taken over.
func (s *Server) traced(h *fasthttp.RequestHeader) context.Context {
	return tracecontext.Extract(s.decisions, tracecontext.Fields{Parent: h.Peek("traceparent"), State: h.Peek("tracestate")})
}
