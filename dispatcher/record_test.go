// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
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

// failing is a Caller that gives no answer.
type failing struct{ text string }

func (f failing) Start(_ context.Context, _ *webhook.Call, to webhook.Receiver) {
	to.Receive(codec.Response{}, &webhook.CallError{Cause: webhook.Unreachable, Err: &codec.AnswerError{Reason: f.text}})
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
		policy  registry.FailurePolicy
		bypass  []match.RequestRule
		message string
	}{
		"B22 failed open": {registry.Ignore, nil, "webhook failed_open"},
		"B22 denied":      {registry.Fail, nil, "admission denied"},
		"B22 bypassed":    {registry.Fail, []match.RequestRule{{Name: nasty, Users: []string{nasty}}}, "admissions bypassed"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			d, err := New(Config{Caller: failing{nasty}, Logger: slog.New(slog.NewJSONHandler(&out, nil))})
			if err != nil {
				t.Fatal(err)
			}
			w := &registry.Webhook{Name: "a.example.com", Matcher: matcher, FailurePolicy: c.policy, Version: codec.V1}
			cluster := &registry.Cluster{Name: "east", Bypass: match.CompileRequestRules(c.bypass)}
			review := &codec.Review{UID: []byte(nasty), Name: []byte(nasty), Namespace: []byte(nasty), Operation: codec.Create,
				User: codec.UserInfo{Username: []byte(nasty)}, Body: codec.NewBody(nil, nil), Version: codec.V1}
			req := Request{Review: review, Cluster: cluster, Deadline: time.Now().Add(time.Minute)}
			v := Verdict{Bypass: nasty, Response: codec.Response{Allowed: true}}
			if c.bypass == nil {
				a := &admission{Request: req, outcomes: nil}
				inv := d.newBatch().add(w, 0, 0)
				inv.call.Body = review.Body
				d.start(t.Context(), inv)
				a.settle(a.judge(inv, codec.Response{}, (<-inv.batch.answers).err, 0))
				v = merge(a)
			}
			d.record(t.Context(), req, &v, time.Second)
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
		d, err := New(Config{Caller: failing{}, Logger: slog.New(slog.NewJSONHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		record := func(cluster string, o Outcome) {
			o.Webhook = &registry.Webhook{Name: "w"}
			v := Verdict{Response: codec.Response{Allowed: !o.Denies()}, Outcomes: []Outcome{o}}
			d.record(t.Context(), Request{Cluster: &registry.Cluster{Name: cluster}, Review: &codec.Review{}}, &v, 0)
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
