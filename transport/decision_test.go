// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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
			rang @20ms => wait
			ended deny => wait, learned read, disagreed`},
		{"twins that agree do not disagree", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow => answer allow, learned read
			ended allow => wait, learned read`},
		{"nor do a verdict and an error", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow => answer allow, learned read
			ended reset => wait`},
		{"nor a denial that is defective and an allow", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended defective => answer defective
			ended allow => wait, learned read`},
		{"what failed before it was hedged is retried, not hedged", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			ended reset @5ms => attempt retry for the price of a retry
			rang @10ms => wait`},
		{"a session of TLS that the server ends is tried elsewhere only", safe, `
			begun => attempt first
			ended alert others => attempt retry for the price of a retry
			ended alert => answer alert`},
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
		{"between half of a pause and all of it", Repeat{Safe: true, Failures: true}, `
			begun => attempt first
			ended malformed jitter=0.5 => sleep 7.5ms for the price of a retry
			woke => attempt retry
			ended malformed jitter=0.9 => sleep 19ms for the price of a retry`},
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
		{"just before that it is", safe, `
			begun => attempt first
			unavailable => sleep 5ms
			woke reachable @995ms => attempt first`},
		{"DenyWins: an allow waits for its twin", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow @20ms => wait, alarm 120ms, learned read
			ended deny @30ms => answer deny, learned read, disagreed`},
		{"and answers if that allows, too", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended allow @20ms => wait, alarm 120ms, learned read
			ended allow @30ms => answer allow, learned read`},
		{"it does not where it has none", Repeat{Safe: true, DenyWins: true}, `
			begun => attempt first
			ended allow => answer allow, learned read`},
		{"nor does anything but an allow", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended malformed @20ms => wait
			ended deny @30ms => answer deny, learned read`},
		{"nor a denial", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended deny @20ms => answer deny, learned read`},
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
		{"a plain one that is too busy says nothing", safe, `
			begun => attempt first
			ended unread => attempt retry plain
			ended plain busy => answer busy`},
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
		{"what a twin of the wording that was given up says is no news", Repeat{Safe: true, Failures: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended unread => attempt retry plain
			unavailable => wait, learned misread
			ended unread => sleep 5ms for the price of a retry
			woke => attempt retry plain
			ended plain status => sleep 10ms for the price of a retry
			woke => attempt retry plain
			ended plain allow => answer allow`},
		{"nor is what a twin fails with", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended unread => attempt retry plain
			ended status => wait
			ended plain allow => answer allow, learned misread`},
		{"what is learned once is not learned again", Repeat{Safe: true, DenyWins: true}, `
			begun hedged=10ms => attempt first, alarm 10ms
			ended unread => attempt retry plain, alarm 10ms
			rang @10ms => attempt hedge plain for the price of a hedge
			ended plain allow @20ms => wait, alarm 120ms, learned misread
			ended plain allow @30ms => answer allow`},
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
		{"a denial of its twin, which is not in doubt, stands at once", safe, `
			begun hedged=10ms => attempt first, alarm 10ms
			rang @10ms => attempt hedge for the price of a hedge
			ended unclear => attempt retry plain
			ended deny => answer deny, learned read`},
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
	"alert":     fails(0, hook.TLS, breaker.TLSFailed).result,
	"defective": {err: &codec.AnswerError{Reason: "defective", Denies: true}, kind: breaker.BadAnswer},
	"status":    {err: &hook.CallError{Cause: hook.HTTPStatus, Err: errors.New("status")}, kind: breaker.ServerError, status: 500},
	"busy":      {err: &hook.CallError{Cause: hook.HTTPStatus, Err: errors.New("busy")}, kind: breaker.ServerError, status: 503},
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
		jitter, isJitter := strings.CutPrefix(word, "jitter=")
		end, isEnd := endsOf[word]
		what, isWhat := happenings[word]
		switch {
		case isTime:
			e.now = begin.Add(parsed(t, after))
		case isHedge:
			e.hedge = parsed(t, hedge)
		case isJitter:
			if _, err := fmt.Sscan(jitter, &e.jitter); err != nil {
				t.Fatal(err)
			}
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

// Whatever happens to a call, and whatever it is denied: it is answered once, by a
// verdict if one has come that is not in doubt, and by no error while an attempt runs;
// nothing is sent once it is answered or nobody needs it, nothing that may have been
// sent is sent again where that has side effects, and there are at most four attempts.
func TestDecisionKeepsItsPromises(t *testing.T) {
	words := []string{"allow", "deny", "defective", "malformed", "reset", "refused", "stale", "alert", "timeout", "status", "unread", "unclear"}
	rapid.Check(t, func(t *rapid.T) {
		repeat := Repeat{Safe: rapid.Bool().Draw(t, "safe"), NoHedge: rapid.Bool().Draw(t, "noHedge"), Failures: rapid.Bool().Draw(t, "failures"), DenyWins: rapid.Bool().Draw(t, "denyWins")}
		begin := time.Unix(1_000_000, 0)
		deadline := begin.Add(time.Second)
		d := decision{repeat: repeat, deadline: deadline}
		e := event{now: begin}
		if repeat.Safe && !repeat.NoHedge && rapid.Bool().Draw(t, "hedged") {
			e.hedge = 10 * time.Millisecond
		}
		var (
			running  []choice
			sleeps   bool
			unneeded bool
			begun    int
			sent     bool // what may have had an effect
			answered bool
			denied   bool // by a verdict, in time
			verdict  bool
		)
		take := func(s step) {
			for (s.do == attempt || s.do == sleep) && rapid.IntRange(0, 5).Draw(t, "granted") == 0 {
				s = d.decide(event{what: unavailable, refused: s, now: e.now, unneeded: e.unneeded, reachable: e.reachable, others: e.others})
			}
			switch s.do {
			case attempt:
				if begun++; begun > maxAttempts || answered || e.unneeded && begun > 1 || sent && !repeat.Safe {
					t.Fatalf("attempt %d, answered %v, unneeded %v, sent %v", begun, answered, e.unneeded, sent)
				}
				if s.kind == Hedge && (repeat.NoHedge || len(running) != 1) {
					t.Fatalf("a hedge of %d attempts", len(running))
				}
				running = append(running, s.choice)
			case sleep:
				sleeps = true
				if !e.now.Add(s.pause).Before(deadline) {
					t.Fatalf("it sleeps %v, with %v left", s.pause, deadline.Sub(e.now))
				}
			case answer:
				end := s.end
				switch {
				case answered:
					t.Fatal("it is answered twice")
				case end.err != nil && !end.verdict() && (len(running) > 0 || verdict):
					t.Fatalf("%v is answered, %d attempts run, a verdict %v", end.err, len(running), verdict)
				case denied && end.allows():
					t.Fatal("an allow is answered after a denial")
				}
				answered = true
			case wait:
			}
			if d.running != len(running) || d.attempts != begun {
				t.Fatalf("%d of %d attempts run, it thinks %d of %d", len(running), begun, d.running, d.attempts)
			}
			if !answered && len(running) == 0 && !sleeps {
				t.Fatal("nobody does anything any more")
			}
		}
		take(d.decide(e))
		for len(running) > 0 || sleeps || !d.alarm.IsZero() {
			e = event{now: e.now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}).Draw(t, "later"))}
			unneeded = unneeded || rapid.IntRange(0, 9).Draw(t, "unneeded") == 0
			e.unneeded = unneeded
			e.others, e.reachable, e.jitter = rapid.Bool().Draw(t, "others"), rapid.Bool().Draw(t, "reachable"), rapid.Float64Range(0, 0.99).Draw(t, "jitter")
			switch {
			case !d.alarm.IsZero() && rapid.Bool().Draw(t, "rings"):
				e.what = rang
				if e.now.Before(d.alarm) {
					e.now = d.alarm
				}
			case sleeps:
				e.what, sleeps = woke, false
			case len(running) > 0:
				i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				e.what, e.end = ended, endsOf[rapid.SampledFrom(words).Draw(t, "end")]
				e.end.plain = running[i].plain
				e.end.doubtful = e.end.doubtful && !e.end.plain
				running = slices.Delete(running, i, i+1)
				sent = sent || !e.end.unsent
				if e.end.verdict() && !e.end.doubtful && !answered {
					verdict, denied = true, denied || !e.end.allows()
				}
			}
			take(d.decide(e))
		}
		if !answered {
			t.Fatal("it is never answered")
		}
	})
}
