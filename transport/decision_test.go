// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// TestDecision has the decision about calls of a second made from the events on the
// left, and compares the steps. A line is "event => step". "plain" is of an attempt
// in the plain wording, "@" the time since the call began.
func TestDecision(t *testing.T) {
	safe := Repeat{Safe: true}
	for _, row := range []struct {
		name   string
		repeat Repeat
		script string
	}{
		{"the first verdict is the answer", Repeat{}, `
			begun => attempt first
			ended deny => answer deny, learned read`},
		{"an error is", Repeat{}, `
			begun => attempt first
			ended malformed => answer malformed`},
		{"F8 a slow attempt is hedged", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow => answer allow, learned read
			ended deny => wait, learned read, disagreed`},
		{"an alarm that was stopped, or set anew, is none", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @9ms => wait, alarm 10ms
			ended allow => answer allow, learned read
			rang @10ms => wait`},
		{"a hedge that is denied changes nothing", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			unavailable => wait
			ended reset others => attempt retry for the price of a retry`},
		{"nobody needs a hedge", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms unneeded => wait`},
		{"F21 an error never beats a verdict that may still come", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended malformed => wait
			ended malformed => answer malformed`},
		{"F12 a reset is retried", safe, `
			begun => attempt first
			ended reset => attempt retry for the price of a retry
			ended allow => answer allow, learned read`},
		{"and answers if the budget does not have that", safe, `
			begun => attempt first
			ended reset => attempt retry for the price of a retry
			unavailable => answer reset`},
		{"F13 with side effects it is not", Repeat{}, `
			begun => attempt first
			ended reset others => answer reset`},
		{"F2 what was never sent goes elsewhere, for free", Repeat{}, `
			begun => attempt first
			ended refused others => attempt retry
			ended refused => answer refused`},
		{"F14 an idle connection that was closed is replaced once", safe, `
			begun => attempt first
			ended stale => attempt retry fresh
			ended stale => attempt retry fresh for the price of a retry`},
		{"Failures: after pauses that double", Repeat{Safe: true, Failures: true}, `
			begun => attempt first
			ended malformed => sleep 5ms for the price of a retry
			woke => attempt retry
			ended malformed => sleep 10ms for the price of a retry
			woke => attempt retry
			ended malformed => sleep 20ms for the price of a retry
			woke => attempt retry
			ended malformed => answer malformed`},
		{"not where the pause is longer than what is left", Repeat{Safe: true, Failures: true}, `
			begun => attempt first
			ended malformed @995ms => answer malformed`},
		{"nor where nobody needs it after the pause", Repeat{Safe: true, Failures: true}, `
			begun => attempt first
			ended malformed => sleep 5ms for the price of a retry
			woke unneeded => answer malformed`},
		{"an open circuit is looked at again", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			unavailable => sleep 5ms
			woke reachable => attempt first
			unavailable => sleep 10ms
			woke reachable hedged=10ms @15ms => attempt first, alarm 25ms`},
		{"too many look", safe, `
			begun => attempt first
			unavailable => sleep 5ms
			unavailable => answer nobody`},
		{"not if the Target cannot be reached", safe, `
			begun => attempt first
			unavailable => sleep 5ms
			woke => answer nobody`},
		{"nor in the last moment", safe, `
			begun => attempt first
			unavailable => sleep 5ms
			woke reachable @996ms => answer nobody`},
		{"DenyWins: an allow waits for its twin", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow @20ms => wait, alarm 120ms, learned read
			ended deny @30ms => answer deny, learned read, disagreed`},
		{"for a moment, and never beyond the deadline", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=900ms => attempt first, alarm 900ms
			rang @900ms => attempt hedge for the price of a hedge
			ended allow @950ms => wait, alarm 1s, learned read
			rang @1s => answer allow`},
		{"and an error does not count", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow @20ms => wait, alarm 120ms, learned read
			ended malformed @30ms => answer allow`},
		{"a wording that is not read is given up, for free", safe, `
			begun => attempt first
			ended unread => attempt retry plain
			ended plain allow => answer allow, learned misread`},
		{"it is not at fault if the plain one fails too", safe, `
			begun => attempt first
			ended unread => attempt retry plain
			ended plain status => answer status, learned blameless`},
		{"it is if that gets no answer in time", safe, `
			begun => attempt first
			ended unread => attempt retry plain
			ended plain timeout => answer timeout, learned misread`},
		{"with side effects it is given up for the calls to come", Repeat{}, `
			begun => attempt first
			ended unread => answer unread, learned misread`},
		{"likewise if no Endpoint may be called", safe, `
			begun => attempt first
			ended unread => attempt retry plain
			unavailable => answer unread, learned misread`},
		{"a retry that is not to be had then ends the call", Repeat{Safe: true, Failures: true}, `
			begun => attempt first
			ended unread => attempt retry plain
			unavailable => sleep 5ms for the price of a retry, learned misread
			woke => attempt retry plain
			unavailable => answer unread`},
		{"a denial in doubt stands unless the plain wording brings a verdict", safe, `
			begun => attempt first
			ended unclear => attempt retry plain
			ended plain reset => attempt retry plain for the price of a retry
			unavailable => answer unclear`},
		{"and does not then", safe, `
			begun => attempt first
			ended unclear => attempt retry plain
			ended plain allow => answer allow, learned misread`},
		{"an allow in the same wording is no better", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended unclear => attempt retry plain
			ended allow => wait, learned read
			ended plain status => answer unclear, learned blameless`},
		{"nor is such a denial any better than an allow in the plain one", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended unread => attempt retry plain
			ended plain allow @20ms => wait, alarm 120ms, learned misread
			ended unclear @30ms => answer allow`},
		{"nor one that waits", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow @20ms => wait, alarm 120ms, learned read
			ended unclear @30ms => attempt retry plain
			ended plain deny @40ms => answer deny, learned misread`},
	} {
		t.Run(row.name, func(t *testing.T) {
			begin := time.Unix(1_000_000, 0)
			d := decision{repeat: row.repeat, deadline: begin.Add(time.Second)}
			var last step
			for line := range strings.SplitSeq(strings.TrimSpace(row.script), "\n") {
				text, want, _ := strings.Cut(strings.TrimSpace(line), " => ")
				e := eventOf(t, text, begin)
				e.refused = last
				last = d.decide(e)
				if got := last.text(&d, begin); got != want {
					t.Fatalf("%s: %s, want %s", text, got, want)
				}
			}
			if d.running < 0 || d.attempts > maxAttempts || d.running > d.attempts {
				t.Errorf("%d attempts, %d of them running", d.attempts, d.running)
			}
		})
	}
}

// endsOf are the ends of attempts by the words of TestDecision.
var endsOf = map[string]result{
	"allow":     says(0, true).result,
	"deny":      says(0, false).result,
	"malformed": malformed.result,
	"reset":     reset.result,
	"refused":   refused.result,
	"stale":     stale.result,
	"timeout":   fails(0, hook.Timeout, breaker.TimedOut).result,
	"status":    {err: &hook.CallError{Cause: hook.HTTPStatus, Err: errors.New("status")}, kind: breaker.ServerError, status: 500},
	"unread":    {err: &hook.CallError{Cause: hook.HTTPStatus, Err: errors.New("unread")}, kind: breaker.ClientError, doubtful: true},
	"unclear":   {err: &codec.AnswerError{Reason: "unclear", Denies: true}, kind: breaker.BadAnswer, doubtful: true},
}

var happenings = map[string]happening{"begun": begun, "ended": ended, "rang": rang, "woke": woke, "unavailable": unavailable}

func parsed(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func eventOf(t *testing.T, text string, begin time.Time) event {
	e := event{now: begin}
	for _, word := range strings.Fields(text) {
		after, isTime := strings.CutPrefix(word, "@")
		hedge, isHedge := strings.CutPrefix(word, "hedged=")
		end, isEnd := endsOf[word]
		what, isWhat := happenings[word]
		switch {
		case isTime:
			e.now = begin.Add(parsed(t, after))
		case isHedge:
			e.hedge = parsed(t, hedge)
		case isEnd:
			end.plain = e.end.plain
			e.end = end
		case isWhat:
			e.what = what
		case word == "plain":
			e.end.plain = true
		case word == "others":
			e.others = true
		case word == "reachable":
			e.reachable = true
		case word == "unneeded":
			e.unneeded = true
		default:
			t.Fatalf("%q is no word of an event", word)
		}
	}
	return e
}

// text is a step in the words of TestDecision.
func (s *step) text(d *decision, begin time.Time) string {
	text := []string{"wait", "answer", "attempt", "sleep"}[s.do]
	switch s.do {
	case answer:
		text += " " + wordOf(&s.end)
	case attempt:
		text += " " + s.kind.String()
	case sleep:
		text += " " + s.pause.String()
	}
	for _, part := range []struct {
		is   bool
		text string
	}{
		{s.plain, " plain"},
		{s.fresh, " fresh"},
		{s.price == retryPrice, " for the price of a retry"},
		{s.price == hedgePrice, " for the price of a hedge"},
		{!d.alarm.IsZero(), fmt.Sprintf(", alarm %v", d.alarm.Sub(begin))},
		{s.lesson != 0, ", learned " + []string{"", "read", "misread", "blameless"}[s.lesson]},
		{s.disagreed, ", disagreed"},
	} {
		if part.is {
			text += part.text
		}
	}
	return text
}

func wordOf(end *result) string {
	for word, known := range endsOf {
		if errors.Is(end.err, known.err) && known.resp.Allowed == end.resp.Allowed {
			return word
		}
	}
	if errors.Is(end.err, errNobody) {
		return "nobody"
	}
	return fmt.Sprint(end.err)
}
