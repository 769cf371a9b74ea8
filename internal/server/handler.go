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
	"github.com/admission-dispatcher/dispatcher/registry"
)

// handle is the journey of one admission. fasthttp has read the head and nothing
// else on purpose: what can be refused for it is, before the body. When handle
// returns fasthttp writes the answer.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer s.contain(ctx)
	in := intake{buffers: s.memory.buffers, data: s.takeOver(ctx)}
	defer in.drop()
	timeout, asks, r := s.screen(&ctx.Request.Header)
	if r != accepted {
		s.refuse(ctx, r)
		return
	}
	snapshot := s.cfg.Snapshot()
	if snapshot == nil {
		s.refuse(ctx, notReady)
		return
	}
	defer snapshot.Release()
	req, r := s.request(ctx, snapshot, timeout)
	if r != accepted {
		s.refuse(ctx, r)
		return
	}
	c := connOf(ctx)
	c.asks = asks
	in.holder = s.memory.of(req.Cluster.Name)
	in.until = time.Now().Add(max(time.Millisecond, min(s.cfg.BodyTimeout, budget(timeout, 0, s.cfg.MaxTimeout))))
	limit := s.limit(req.Cluster)
	if r := s.receive(c, &in, limit); r != accepted {
		s.incomplete(ctx, req, &in, r)
		return
	}
	if encoding, ok := compression(ctx.Request.Header.ContentEncoding()); ok {
		if r := in.decompress(encoding, limit); r != accepted {
			s.incomplete(ctx, req, &in, r)
			return
		}
	}
	body := in.body()
	defer body.Release()
	s.judge(ctx, req, body)
}

// limit returns how many bytes the body of a cluster's request may have.
func (s *Server) limit(cluster *chain.Cluster) int {
	if own := cluster.RequestBytes; own > 0 {
		return int(min(int64(s.cfg.BodyLimit), own))
	}
	return s.cfg.BodyLimit
}

// incomplete answers a request whose body was not read to its end. Where its uid was,
// the answer is a denial: kube-apiserver's failurePolicy must not turn it into an
// allow. What still comes of the body is not another request.
func (s *Server) incomplete(ctx *fasthttp.RequestCtx, req dispatcher.Request, in *intake, r refusal) {
	req.Review = codec.AcquireReview()
	defer codec.ReleaseReview(req.Review)
	head := codec.NewBody(in.data, nil)
	defer head.Release()
	encoding, _ := mediaEncoding(ctx.Request.Header.ContentType())
	if !req.Review.DecodeHead(head, encoding) {
		s.refuse(ctx, r)
		return
	}
	response := s.decline(s.tracedOf(ctx), req, r.defect())
	s.reply(ctx, req.Review, &response)
	ctx.SetConnectionClose()
	connOf(ctx).lingers.Store(true)
}

// judge answers the review in body.
func (s *Server) judge(ctx *fasthttp.RequestCtx, req dispatcher.Request, body *codec.Body) {
	req.Review = codec.AcquireReview()
	defer codec.ReleaseReview(req.Review)
	if err := decode(req.Review, ctx.Request.Header.ContentType(), body); err != nil {
		s.undecodable(ctx, req, err)
		return
	}
	response := s.decide(s.tracedOf(ctx), req)
	s.reply(ctx, req.Review, &response)
}

// tracedOf returns the context of an admission: shutdown, and the caller's trace.
func (s *Server) tracedOf(ctx *fasthttp.RequestCtx) context.Context {
	return traced(s.decisions, &ctx.Request.Header)
}

// decode reads the review in the encoding that its Content-Type says.
func decode(review *codec.Review, contentType []byte, body *codec.Body) error {
	if e, _ := mediaEncoding(contentType); e == codec.Protobuf { // screen has seen that it is one
		return review.DecodeProtobuf(body)
	}
	return review.Decode(body)
}

// request says who asks for what, and until when.
func (s *Server) request(ctx *fasthttp.RequestCtx, snapshot *registry.Snapshot, timeout time.Duration) (dispatcher.Request, refusal) {
	h, c := &ctx.Request.Header, connOf(ctx)
	path, _ := splitURI(h.RequestURI())
	route, _ := parseRoute(path) // screen has seen that it is one
	shown := credentials{c.chains, h.PeekAll(fasthttp.HeaderAuthorization)}
	cluster := identify(snapshot, shown, route.cluster, c.arrived)
	if cluster == nil || cluster.Name != string(route.cluster) {
		return dispatcher.Request{}, forbidden
	}
	if !c.belongTo(cluster.Name) {
		return dispatcher.Request{}, crowded
	}
	considered, current := cluster.Chain(route.phase).Path(route.segment)
	if !current {
		s.records.outdated(cluster, route.phase)
	}
	return dispatcher.Request{
		Cluster:  cluster,
		Phase:    route.phase,
		Path:     considered,
		Outdated: !current,
		Snapshot: snapshot.ShortHash(),
		Deadline: c.arrived.Add(budget(timeout, cluster.Timeout, s.cfg.MaxTimeout)),
		Arrived:  c.arrived,
		Host:     h.Host(),
	}, accepted
}

// undecodable answers a body that is no admission. Where there is a uid to answer to
// the answer is a denial, as that of incomplete is.
func (s *Server) undecodable(ctx *fasthttp.RequestCtx, req dispatcher.Request, err error) {
	var request *codec.RequestError
	if !errors.As(err, &request) {
		_, text := notReview.describe()
		s.turnAway(ctx, notReview, text+": "+printable(detail(err)), text+": "+printable(err.Error()))
		return
	}
	response := s.decline(s.tracedOf(ctx), req, dispatcher.Defect{
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
	s.records.panicked(value, debug.Stack())
	s.records.observer.TurnedAway(req.Cluster.Name, panicked.String())
	*response = codec.Response{
		Code:    http.StatusInternalServerError,
		Reason:  "InternalError",
		Message: "Internal error occurred: the dispatcher failed",
	}
}

// contain ends a panic anywhere else in handle.
func (s *Server) contain(ctx *fasthttp.RequestCtx) {
	if value := recover(); value != nil {
		s.records.panicked(value, debug.Stack())
		s.refuse(ctx, panicked)
	}
}
