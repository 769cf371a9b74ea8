// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// handle is the journey of one admission. fasthttp has read headers that screen
// let pass, and the whole body; when handle returns it writes the answer.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	defer s.contain(ctx)
	received := s.takeBody(ctx)
	defer received.Release()
	snapshot := s.cfg.Snapshot()
	if snapshot == nil {
		s.refuse(ctx, notReady)
		return
	}
	defer snapshot.Release()
	req, r := s.request(ctx, snapshot)
	if r != accepted {
		s.refuse(ctx, r)
		return
	}
	body, r := s.plainBody(ctx, received, req.Cluster)
	if r != accepted {
		s.refuse(ctx, r)
		return
	}
	defer body.Release()
	s.judge(ctx, req, body)
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
func (s *Server) request(ctx *fasthttp.RequestCtx, snapshot *registry.Snapshot) (dispatcher.Request, refusal) {
	h, c := &ctx.Request.Header, connOf(ctx)
	path, query := splitURI(h.RequestURI())
	route, _ := parseRoute(path) // screen has seen that both
	timeout, _ := parseTimeout(query, s.cfg.DefaultTimeout)
	shown := credentials{c.chains, h.PeekAll(fasthttp.HeaderAuthorization)}
	cluster := identify(snapshot, shown, route.cluster, c.arrived)
	if cluster == nil || cluster.Name != string(route.cluster) {
		return dispatcher.Request{}, forbidden
	}
	if !c.belongTo(cluster.Name) {
		return dispatcher.Request{}, crowded
	}
	return dispatcher.Request{
		Cluster:  cluster,
		Phase:    route.phase,
		Snapshot: snapshot.ShortHash(),
		Deadline: c.arrived.Add(budget(timeout, cluster.Timeout, s.cfg.MaxTimeout)),
		Arrived:  c.arrived,
		Host:     h.Host(),
	}, accepted
}

// undecodable answers a body that is no admission. Where the envelope is
// readable the answer is a denial: kube-apiserver's failurePolicy must not turn
// it into an allow.
func (s *Server) undecodable(ctx *fasthttp.RequestCtx, req dispatcher.Request, err error) {
	var request *codec.RequestError
	if !errors.As(err, &request) {
		_, text := notReview.describe()
		s.turnAway(ctx, notReview, text+": "+printable(detail(err)), text+": "+printable(err.Error()))
		return
	}
	response := s.decline(s.tracedOf(ctx), req, printable(request.Error()))
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

func (s *Server) decline(ctx context.Context, req dispatcher.Request, why string) (response codec.Response) {
	defer s.deny(req, &response)
	return s.cfg.Decider.Decline(ctx, req, why).Response
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
