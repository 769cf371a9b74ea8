// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// A bypass is said at once and then once per interval, with how many there were.
func TestBypassLog(t *testing.T) {
	var l bypassLog
	type key struct{ cluster, rule string }
	leases, other, nodes := key{"east", "leases"}, key{"west", "leases"}, key{"east", "nodes"}
	start := time.Now()
	for _, step := range []struct {
		key      key
		after    time.Duration
		requests int
		due      bool
	}{
		{leases, 0, 1, true},
		{leases, time.Second, 0, false},
		{other, time.Second, 1, true},
		{nodes, time.Second, 1, true},
		{leases, 2 * time.Second, 0, false},
		{leases, bypassInterval, 3, true},
		{leases, bypassInterval + time.Second, 0, false},
	} {
		if n, due := l.count(step.key.cluster, step.key.rule, start.Add(step.after)); n != step.requests || due != step.due {
			t.Errorf("%v after %v: %d, %v", step.key, step.after, n, due)
		}
	}
}

// failing is a Hook that gives no answer.
type failing struct{ text string }

func (f failing) Ask(_ context.Context, _ hook.Question, to hook.Receiver) hook.Outstanding {
	to.Receive(codec.Response{}, &hook.CallError{Cause: hook.Unreachable, Err: &codec.AnswerError{Reason: f.text}})
	return nil
}

// B22: whatever names and errors contain, each line stays one JSON record, and what
// fails open, denies or bypasses has one.
func TestRecords(t *testing.T) {
	const nasty = "a\nb\x1b[31m\"\u202e" + "{}"
	matcher, err := match.Compile(match.Spec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		policy  chain.FailurePolicy
		bypass  []exempt.Rule
		message string
	}{
		"B22 failed open": {chain.Ignore, nil, "webhook failed_open"},
		"B22 denied":      {chain.Fail, nil, "admission denied"},
		"B22 bypassed":    {chain.Fail, []exempt.Rule{{Name: nasty, Users: []string{nasty}}}, "admissions bypassed"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			d, err := New(Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
			if err != nil {
				t.Fatal(err)
			}
			w := &chain.Entry{ID: hook.ID{Name: "a.example.com"}, Hook: failing{nasty}, Matcher: matcher, FailurePolicy: c.policy}
			cluster := &chain.Cluster{Name: "east", Bypass: exempt.Compile(c.bypass)}
			review := &codec.Review{UID: []byte(nasty), Name: []byte(nasty), Namespace: []byte(nasty), Operation: codec.Create,
				User: codec.UserInfo{Username: []byte(nasty)}, Body: codec.NewBody(nil, nil), Version: codec.V1}
			req := Request{Review: review, Cluster: cluster, Deadline: time.Now().Add(time.Minute)}
			v := Verdict{Bypass: nasty, Response: codec.Response{Allowed: true}}
			if c.bypass == nil {
				a := &admission{Request: req, outcomes: nil}
				inv := d.newBatch().add(w, 0, 0)
				d.start(t.Context(), inv, hook.Question{})
				a.settle(a.judge(inv, codec.Response{}, (<-inv.batch.answers).err, 0))
				v = merge(a)
			}
			d.recorder.record(t.Context(), &Record{Request: req, Verdict: &v, Elapsed: time.Second})
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			said := false
			for _, line := range lines {
				var record map[string]any
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Fatalf("not one record: %q", line)
				}
				said = said || record["msg"] == c.message
			}
			if !said {
				t.Errorf("no line says %q: %s", c.message, out.String())
			}
		})
	}
}

// Denials of one cluster get so many lines in a second, and the rest is counted; what
// fails open always gets one, as do the denials of other clusters.
func TestDenialsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d, err := New(Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		record := func(cluster string, o Outcome) {
			o.Webhook = &chain.Entry{ID: hook.ID{Name: "w"}}
			v := Verdict{Response: codec.Response{Allowed: !o.Denies()}, Outcomes: []Outcome{o}}
			d.recorder.record(t.Context(), &Record{Request: Request{Cluster: &chain.Cluster{Name: cluster}, Review: &codec.Review{}}, Verdict: &v, Start: time.Now()})
		}
		for range 1000 {
			record("storm", Outcome{Result: Denied})
			record("storm", Outcome{Result: FailedOpen})
		}
		record("quiet", Outcome{Result: Denied})
		<-time.After(time.Second)
		record("storm", Outcome{Result: Denied})
		text := out.String()
		if denied, open := strings.Count(text, "admission denied"), strings.Count(text, "webhook failed_open"); denied != denialsPerSecond+2 || open != 1000 {
			t.Errorf("%d lines of denials, %d of what failed open", denied, open)
		}
		if !strings.Contains(text, `"cluster":"quiet"`) || !strings.Contains(text, `"left_out":900`) {
			t.Error("what was left out is not counted, or another cluster's is left out")
		}
	})
}

// What each line says, word for word: of an allow only where it is one of the sample,
// or when debugging.
func TestLinesSay(t *testing.T) {
	late := &hook.CallError{Cause: hook.Timeout, Err: errors.New("late")}
	crashed := &hook.CallError{Cause: hook.Panic, Err: errors.New("crash"), Stack: []byte("goroutine 1")}
	w := func(name string, policy chain.FailurePolicy, mode chain.Mode) *chain.Entry {
		return &chain.Entry{ID: hook.ID{Name: name, Configuration: "c"}, FailurePolicy: policy, Mode: mode}
	}
	const about = `"cluster":"east","phase":"validate","snapshot":"s","uid":"u-1","operation":"CREATE","group":"apps","version":"v1","resource":"deployments","subresource":"scale","namespace":"shop","name":"web"`
	const decided = about + `,"elapsed_seconds":1.5,"outcomes":`
	long := strings.Repeat("x", 600)
	for _, c := range []struct {
		name  string
		level slog.Level
		allow int // in each second
		v     Verdict
		want  []string
	}{
		{"an allow", slog.LevelInfo, 0, Verdict{Response: codec.Response{Allowed: true}}, nil},
		{"an allow, debugging", slog.LevelDebug, 0, Verdict{Response: codec.Response{Allowed: true}}, []string{
			`"level":"DEBUG","msg":"admission allowed",` + decided + `0`,
		}},
		{"an allow of the sample", slog.LevelInfo, 1, Verdict{Response: codec.Response{Allowed: true}}, []string{
			`"level":"INFO","msg":"admission allowed",` + decided + `0`,
		}},
		{"what failed open", slog.LevelInfo, 0, Verdict{Response: codec.Response{Allowed: true}, Outcomes: []Outcome{
			{Webhook: w("a", chain.Ignore, chain.Enforce), Result: FailedOpen, Cause: hook.Timeout, Err: late, Elapsed: time.Second / 2},
			{Webhook: w("b", chain.Fail, chain.Warn), Result: Softened, Softened: true},
			{Webhook: w("c", chain.Ignore, chain.Enforce), Result: Skipped, Cause: hook.MatchError, Err: errors.New("no such key")},
		}}, []string{
			`"level":"WARN","msg":"webhook failed_open",` + about + `,"configuration":"c","webhook":"a","error":"late","cause":"Timeout","policy":"failurePolicy Ignore","mode":"Enforce","elapsed_seconds":0.5`,
			`"level":"INFO","msg":"webhook softened",` + about + `,"configuration":"c","webhook":"b","cause":"Denied","policy":"failurePolicy Fail","mode":"Warn","elapsed_seconds":0`,
			`"level":"WARN","msg":"webhook skipped",` + about + `,"configuration":"c","webhook":"c","error":"no such key","cause":"MatchError","policy":"failurePolicy Ignore","mode":"Enforce","elapsed_seconds":0`,
		}},
		{"denials", slog.LevelInfo, 0, Verdict{Response: codec.Response{Code: 403}, Outcomes: []Outcome{
			{Webhook: w("a", chain.Fail, chain.Enforce), Result: Denied, Response: codec.Response{Message: "secret"}},
			{Webhook: w("b", chain.Fail, chain.Enforce), Result: Failed, Cause: hook.Timeout, Err: late},
			{Webhook: w("c", chain.Fail, chain.Enforce), Result: Allowed},
		}}, []string{
			`"level":"INFO","msg":"admission denied",` + decided + `3,"decision":"denied","code":403,"by":"c/a (Denied); c/b (Timeout)","error":"c/b: late"`,
		}},
		{"a denial alone", slog.LevelInfo, 0, Verdict{Response: codec.Response{Code: 403}, Outcomes: []Outcome{
			{Webhook: w("a", chain.Fail, chain.Enforce), Result: Denied},
		}}, []string{
			`"level":"INFO","msg":"admission denied",` + decided + `1,"decision":"denied","code":403,"by":"c/a (Denied)"`,
		}},
		{"a long error", slog.LevelInfo, 0, unreadable(Defect{Code: 400, Message: long}), []string{
			`"level":"INFO","msg":"admission denied",` + decided + `0,"decision":"unreadable","code":400,"error":"` + long[:512] + `"`,
		}},
		{"a panic of ours", slog.LevelInfo, 0, panicked(), []string{
			`"level":"INFO","msg":"admission denied",` + decided + `0,"decision":"panicked","code":500,"error":"Internal error occurred: the dispatcher failed"`,
		}},
		{"a panic of a call", slog.LevelWarn, 0, Verdict{Response: codec.Response{Code: 500}, Outcomes: []Outcome{
			{Webhook: w("a", chain.Fail, chain.Enforce), Result: Failed, Cause: hook.Panic, Err: crashed},
		}}, []string{
			`"level":"ERROR","msg":"panic while calling a webhook","configuration":"c","webhook":"a","error":"crash","stack":"goroutine 1"`,
		}},
		{"a bypass", slog.LevelInfo, 0, bypassed("leases", "s"), []string{
			`"level":"INFO","msg":"admissions bypassed",` + about + `,"rule":"leases","requests":1`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: c.level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
			d, err := New(Config{Logger: logger, AllowsPerSecond: c.allow})
			if err != nil {
				t.Fatal(err)
			}
			review := &codec.Review{UID: []byte("u-1"), Operation: codec.Create, SubResource: []byte("scale"), Namespace: []byte("shop"), Name: []byte("web")}
			review.Resource.Group, review.Resource.Version, review.Resource.Resource = []byte("apps"), []byte("v1"), []byte("deployments")
			d.recorder.record(t.Context(), &Record{Request: Request{Cluster: &chain.Cluster{Name: "east"}, Review: review, Snapshot: "s"}, Verdict: &c.v, Elapsed: 1500 * time.Millisecond})
			var want string
			for _, line := range c.want {
				want += "{" + line + "}\n"
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Of allowed admissions so many get a line in each second, and the rest is counted.
func TestAllowsAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d, err := New(Config{Logger: slog.New(slog.NewJSONHandler(&out, nil)), AllowsPerSecond: 2})
		if err != nil {
			t.Fatal(err)
		}
		allow := func() {
			v := Verdict{Response: codec.Response{Allowed: true}}
			d.recorder.record(t.Context(), &Record{Request: Request{Cluster: &chain.Cluster{Name: "east"}, Review: &codec.Review{}}, Verdict: &v, Start: time.Now()})
		}
		for range 10 {
			allow()
		}
		<-time.After(time.Second)
		allow()
		if text := out.String(); strings.Count(text, "admission allowed") != 3 || strings.Count(text, `"left_out":8`) != 1 || strings.Count(text, "left_out") != 1 {
			t.Errorf("logged %s", text)
		}
	})
}
