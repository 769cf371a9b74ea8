// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/excerpt"
)

// Line is one line of the decision log.
type Line struct {
	Time     time.Time `json:"time"`
	Cluster  string    `json:"cluster"`
	Caller   string    `json:"caller,omitempty"` // of the cluster's API servers; none: its kube-apiserver
	Phase    string    `json:"phase"`
	Snapshot string    `json:"snapshot"`
	TraceID  string    `json:"traceID,omitempty"`
	SpanID   string    `json:"spanID,omitempty"`

	Decision       string  `json:"decision"`
	Allowed        bool    `json:"allowed"`
	Code           int32   `json:"code,omitempty"`
	Message        string  `json:"message,omitempty"`
	Bypass         string  `json:"bypass,omitempty"`
	Shed           bool    `json:"shed,omitempty"`
	ElapsedSeconds float64 `json:"elapsedSeconds"`
	LeftSeconds    float64 `json:"leftSeconds"` // of the deadline
	PatchSHA256    string  `json:"patchSHA256,omitempty"`

	Webhooks []Webhook `json:"webhooks,omitempty"`
	Skipped  []Skip    `json:"skipped,omitempty"` // their rules select the resource

	// Cut: Request has some names or lists shorter than they were.
	Cut bool `json:"cut,omitempty"`
	// Request is in the form of an AdmissionReview's request, so that explain can
	// read it.
	Request Request `json:"request"`
}

// Webhook is what one invocation came to.
type Webhook struct {
	Configuration  string  `json:"configuration"`
	Webhook        string  `json:"webhook"`
	Round          int     `json:"round,omitempty"`
	Outcome        string  `json:"outcome"`
	Softened       bool    `json:"softened,omitempty"`
	Cause          string  `json:"cause,omitempty"`
	Code           int32   `json:"code,omitempty"`
	Message        string  `json:"message,omitempty"`
	FailOpenRule   string  `json:"failOpenRule,omitempty"`
	Operations     int     `json:"operations,omitempty"`
	PatchSHA256    string  `json:"patchSHA256,omitempty"`
	ElapsedSeconds float64 `json:"elapsedSeconds"`
}

// Skip is a webhook that was not asked.
type Skip struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Round         int    `json:"round,omitempty"`
	Reason        string `json:"reason"`
	Condition     string `json:"condition,omitempty"`
}

// Request is the review's request.
type Request struct {
	UID         string `json:"uid"`
	Kind        gvk    `json:"kind"`
	Resource    gvr    `json:"resource"`
	SubResource string `json:"subResource,omitempty"`
	Name        string `json:"name,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Operation   string `json:"operation"`
	UserInfo    user   `json:"userInfo"`
	DryRun      bool   `json:"dryRun,omitempty"`

	// What was asked for, where the review is of an equivalent.
	RequestKind        *gvk   `json:"requestKind,omitempty"`
	RequestResource    *gvr   `json:"requestResource,omitempty"`
	RequestSubResource string `json:"requestSubResource,omitempty"`

	// Only where the log has objects.
	Object    json.RawMessage `json:"object,omitempty"`
	OldObject json.RawMessage `json:"oldObject,omitempty"`
	Options   json.RawMessage `json:"options,omitempty"`
}

type gvk struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type gvr struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

// user has what authenticators put into extra only where the log has
// objects: it may be a token.
type user struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// maxMessage bounds what a webhook can put into a line, in bytes.
const maxMessage = 1024

// message is what the log says of the verdict: of a review that cannot be judged
// nothing that the user made up.
func message(v *dispatcher.Verdict) string {
	if v.Unreadable {
		return v.Defect
	}
	return v.Response.Message
}

// newLine copies what a line says, except for objects.
func newLine(ctx context.Context, r *dispatcher.Record) *Line {
	v := r.Verdict
	d := &Line{
		Time: r.Start, Cluster: r.Cluster.Name, Phase: r.Phase.String(), Snapshot: r.Snapshot,
		Decision: v.Decision().String(), Allowed: v.Response.Allowed, Code: v.Response.Code,
		Message: excerpt.Cut(message(v), maxMessage), Bypass: v.Bypass, Shed: v.Shed(),
		ElapsedSeconds: r.Elapsed.Seconds(),
		LeftSeconds:    r.Deadline.Sub(r.End()).Seconds(),
		PatchSHA256:    hashed(v.Response.Patch),
	}
	if r.Server != nil {
		d.Caller = r.Server.Name
	}
	d.setRequest(r.Review)
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		d.TraceID, d.SpanID = s.TraceID().String(), s.SpanID().String()
	}
	for i := range v.Outcomes {
		d.Webhooks = append(d.Webhooks, newWebhook(&v.Outcomes[i]))
	}
	for _, s := range v.Skips {
		d.Skipped = append(d.Skipped, Skip{s.Webhook.Configuration, s.Webhook.Name, s.Round, s.Reason.String(), s.Condition})
	}
	return d
}

func newWebhook(o *dispatcher.Outcome) Webhook {
	return Webhook{
		Configuration: o.Webhook.Configuration, Webhook: o.Webhook.Name, Round: o.Round,
		Outcome: o.Result.String(), Softened: o.Softened, Cause: string(o.Cause), Code: o.Code,
		Message: excerpt.Cut(o.Response.Message, maxMessage), FailOpenRule: o.FailOpenRule,
		Operations: o.Operations, PatchSHA256: hashed(o.Response.Patch), ElapsedSeconds: o.Elapsed.Seconds(),
	}
}

// hashed is the hex SHA-256 of a patch, empty where there is none.
func hashed(patch []byte) string {
	if len(patch) == 0 {
		return ""
	}
	sum := sha256.Sum256(patch)
	return hex.EncodeToString(sum[:])
}

// setRequest copies what a line says of the request, except for objects.
func (d *Line) setRequest(r *codec.Review) {
	c := clipper{&d.Cut}
	d.Request = Request{
		UID:         c.text(r.UID),
		Kind:        c.kind(r.Kind),
		Resource:    c.resource(r.Resource),
		SubResource: c.text(r.SubResource),
		Name:        c.text(r.Name),
		Namespace:   c.text(r.Namespace),
		Operation:   r.Operation.String(),
		DryRun:      r.DryRun,
		UserInfo:    user{Username: c.text(r.User.Username), UID: c.text(r.User.UID), Groups: c.texts(r.User.Groups)},
	}
	if r.HasRequestResource {
		kind, resource := c.kind(r.RequestKind), c.resource(r.RequestResource)
		d.Request.RequestKind, d.Request.RequestResource = &kind, &resource
		d.Request.RequestSubResource = c.text(r.RequestSubResource)
	}
}

// addExtra copies userInfo.extra.
func (d *Line) addExtra(extra []codec.ExtraValue) {
	if len(extra) == 0 {
		return
	}
	c := clipper{&d.Cut}
	all := map[string][]string{}
	for _, e := range extra[:c.most(len(extra))] {
		all[c.text(e.Key)] = c.texts(e.Values)
	}
	d.Request.UserInfo.Extra = all
}

// clipper copies borrowed names, and notes where it leaves something out.
type clipper struct{ cut *bool }

// maxList bounds the groups in a line, and other lists.
const maxList = 64

func (c clipper) text(b []byte) string {
	if len(b) > excerpt.Max {
		*c.cut = true
	}
	return excerpt.Of(b)
}

func (c clipper) texts(list [][]byte) []string {
	all := make([]string, c.most(len(list)))
	for i := range all {
		all[i] = c.text(list[i])
	}
	return all
}

// most is how many of n members are copied.
func (c clipper) most(n int) int {
	if n > maxList {
		*c.cut = true
	}
	return min(n, maxList)
}

func (c clipper) kind(k codec.GroupVersionKind) gvk {
	return gvk{c.text(k.Group), c.text(k.Version), c.text(k.Kind)}
}

func (c clipper) resource(r codec.GroupVersionResource) gvr {
	return gvr{c.text(r.Group), c.text(r.Version), c.text(r.Resource)}
}
