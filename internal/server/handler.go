// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// exchange is one request of a caller and its answer, on the goroutine of their
// connection.
type exchange struct {
	*Server
	ctx  *fasthttp.RequestCtx
	conn *conn
	head head
	req  dispatcher.Request
}

// serve is the journey of one admission. fasthttp has read the head and nothing else on
// purpose: what can be refused for it is, before the body. When serve returns fasthttp
// writes the answer.
func (e *exchange) serve() {
	defer e.contain()
	in := intake{buffers: e.memory.buffers, data: takeOver(e.ctx, e.conn)}
	defer in.drop()
	var r refusal
	if e.head, r = readHead(&e.ctx.Request.Header, &e.cfg); r != accepted {
		e.refuse(r)
		return
	}
	snapshot := e.cfg.Snapshot()
	if snapshot == nil {
		e.refuse(notReady)
		return
	}
	defer snapshot.Release()
	if r := e.identify(snapshot); r != accepted {
		e.refuse(r)
		return
	}
	in.holder, in.limit, in.continues = e.memory.of(e.req.Cluster.Name), e.limit(), e.head.continues
	in.until = time.Now().Add(max(time.Millisecond, min(e.cfg.BodyTimeout, budget(e.head.timeout, 0, e.cfg.MaxTimeout))))
	if r := in.receive(e.conn); r != accepted {
		e.incomplete(in.data, r)
		return
	}
	if r := in.decompress(e.head.compression); r != accepted {
		e.incomplete(in.data, r)
		return
	}
	body := in.body()
	defer body.Release()
	e.judge(body)
}

// identify says who asks for what, and until when.
func (e *exchange) identify(snapshot *registry.Snapshot) refusal {
	cluster, asking := identify(snapshot, e.conn, &e.head)
	if cluster == nil || cluster.Name != string(e.head.route.cluster) {
		return forbidden
	}
	if !cluster.AcceptsFrom(e.conn.peer) {
		return otherSource
	}
	if !e.conn.belongTo(cluster.Name) {
		return crowded
	}
	considered, current := cluster.Chain(e.head.route.phase).Path(e.head.route.segment)
	if !current {
		e.records.outdated(cluster, e.head.route.phase)
	}
	e.req = dispatcher.Request{
		Cluster:  cluster,
		Server:   asking,
		Phase:    e.head.route.phase,
		Path:     considered,
		Outdated: !current,
		Snapshot: snapshot.ShortHash(),
		Deadline: e.conn.arrived.Add(budget(e.head.timeout, cluster.Timeout, e.cfg.MaxTimeout)),
		Delivery: &e.conn.delivery,
		Arrived:  e.conn.arrived,
		Host:     e.head.host,
	}
	return accepted
}

// limit returns how many bytes the body may have.
func (e *exchange) limit() int {
	if own := e.req.Cluster.RequestBytes; own > 0 {
		return int(min(int64(e.cfg.BodyLimit), own))
	}
	return e.cfg.BodyLimit
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
func (e *exchange) incomplete(data []byte, r refusal) {
	e.req.Review = codec.AcquireReview()
	defer codec.ReleaseReview(e.req.Review)
	begun := codec.NewBody(data, nil)
	defer begun.Release()
	if !e.req.Review.DecodeHead(begun, e.head.encoding) {
		e.refuse(r)
		return
	}
	response := e.decline(r.defect())
	e.reply(&response)
	e.ctx.SetConnectionClose()
	e.conn.lingers.Store(true)
}

// judge answers the review in body.
func (e *exchange) judge(body *codec.Body) {
	e.req.Review = codec.AcquireReview()
	defer codec.ReleaseReview(e.req.Review)
	decode := e.req.Review.Decode
	if e.head.encoding == codec.Protobuf {
		decode = e.req.Review.DecodeProtobuf
	}
	if err := decode(body); err != nil {
		e.undecodable(err)
		return
	}
	if !e.req.Server.MaySend(e.req.Review) {
		e.refuse(otherGroup)
		return
	}
	response := e.decide()
	e.reply(&response)
	e.conn.answers(e.head.timeout)
}

// undecodable answers a body that is no admission. Where there is a uid to answer to
// the answer is a denial, as that of incomplete is.
func (e *exchange) undecodable(err error) {
	var request *codec.RequestError
	if !errors.As(err, &request) {
		_, text := notReview.describe()
		e.turnAway(notReview, text+": "+printable(detail(err)), text+": "+printable(err.Error()))
		return
	}
	response := e.decline(dispatcher.Defect{
		Code:    http.StatusBadRequest,
		Message: printable(request.Detail()),
		Logged:  printable(request.Error()),
	})
	e.reply(&response)
}

// detail is what the caller reads of err; the log must do with less.
func detail(err error) string {
	if envelope, ok := errors.AsType[*codec.EnvelopeError](err); ok {
		return envelope.Detail()
	}
	return err.Error()
}

func (e *exchange) decide() (response codec.Response) {
	defer e.deny(&response)
	v := verdicts.Get().(*dispatcher.Verdict)
	e.cfg.Decider.Dispatch(e.traced(), e.req, v)
	return answerOf(v)
}

func (e *exchange) decline(defect dispatcher.Defect) (response codec.Response) {
	defer e.deny(&response)
	v := verdicts.Get().(*dispatcher.Verdict)
	e.cfg.Decider.Decline(e.traced(), e.req, defect, v)
	return answerOf(v)
}

var verdicts = sync.Pool{New: func() any { return new(dispatcher.Verdict) }}

// answerOf returns what v answers, and gives v back. After a panic nobody does.
func answerOf(v *dispatcher.Verdict) codec.Response {
	response := v.Response // which shares nothing with the Outcomes
	v.Reset()
	verdicts.Put(v)
	return response
}

// deny is deferred: a panic around a decision is a denial, not the end of the
// process. Of one inside of it the Decider itself makes a Verdict, and tells.
func (e *exchange) deny(response *codec.Response) {
	value := recover()
	if value == nil {
		return
	}
	e.req.Delivery.Settle(false) // the caller gets another Verdict
	e.records.panicked(value, debug.Stack())
	e.records.observer.TurnedAway(e.req.Cluster.Name, panicked.String())
	*response = codec.Response{
		Code:    http.StatusInternalServerError,
		Reason:  "InternalError",
		Message: "Internal error occurred: the dispatcher failed",
	}
}

// contain ends a panic anywhere else in serve.
func (e *exchange) contain() {
	if value := recover(); value != nil {
		e.conn.delivery.Settle(false) // perhaps there was a Verdict
		e.records.panicked(value, debug.Stack())
		e.refuse(panicked)
	}
}

// reply answers an admission in the encoding that it came in: always 200, whatever the verdict, because any
// other status is a failed call to kube-apiserver. It never sends Retry-After:
// kube-apiserver would hold the user's request and call again.
func (e *exchange) reply(response *codec.Response) {
	e.ctx.SetContentType(e.req.Review.Encoding.ContentType())
	body := e.ctx.Response.SwapBody(nil)
	e.ctx.Response.SwapBody(e.req.Review.AppendAnswer(body[:0], response))
	if at := e.joined.Load(); at != nil {
		e.conn.joined(*at)
	}
	aged := e.conn.isAged()
	if aged {
		e.aged.Add(1)
	}
	if aged || e.lame.Load() {
		e.ctx.SetConnectionClose()
	}
}

// traced returns the context of an admission: shutdown, and the caller's trace, if its
// headers have one that is valid (W3C Trace Context). Baggage is not taken over.
func (e *exchange) traced() context.Context {
	h := &e.ctx.Request.Header
	return tracecontext.Extract(e.decisions, tracecontext.Fields{Parent: h.Peek("traceparent"), State: h.Peek("tracestate")})
}

// refuse answers with r and makes fasthttp close the connection.
func (e *exchange) refuse(r refusal) {
	_, text := r.describe()
	e.turnAway(r, text, r.recorded())
}

// turnAway is refuse with more to say: told goes to the caller, recorded to the
// log.
func (e *exchange) turnAway(r refusal, told, recorded string) {
	status, _ := r.describe()
	e.ctx.SetStatusCode(status)
	e.ctx.SetContentType("text/plain; charset=utf-8")
	e.ctx.SetBodyString(told + "\n")
	if r == notPost {
		e.ctx.Response.Header.Set(fasthttp.HeaderAllow, fasthttp.MethodPost)
	}
	e.ctx.SetConnectionClose()
	e.conn.lingers.Store(r != tooSlow)
	var from *chain.Cluster
	if r != panicked { // perhaps because of what this looks at
		from = caller(e.cfg.Snapshot, e.conn, &e.head)
	}
	attrs := sender(e.ctx, &e.head)
	if e.req.Server != nil {
		attrs = append(attrs, slog.String("caller", e.req.Server.Name))
	}
	if defect := e.head.authorization.defect; defect != nil {
		attrs = append(attrs, slog.String("token", defect.Error()))
	}
	e.records.refused(attrs, from, r, recorded)
}
