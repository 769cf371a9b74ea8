// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// What a user reads of an Outcome that denies, and of one that does not but must not be
// silent, word for word.
func TestMessages(t *testing.T) {
	const platform = "; this is a platform problem, not a decision of the webhook)"
	late := &hook.CallError{Cause: hook.Timeout, Err: errors.New("late")}
	for name, c := range map[string]struct {
		entry            chain.Entry
		outcome          Outcome
		message, warning string
	}{
		"a denial": {
			outcome: Outcome{Result: Denied, Response: codec.Response{Message: "no"}},
			message: `admission webhook "w" denied the request: no`,
		},
		"a denial of several lines": {
			outcome: Outcome{Result: Denied, Response: codec.Response{Message: "no\n\nnever\n\n"}},
			message: "admission webhook \"w\" denied the request: no\n\n  never",
		},
		"a failure": {
			outcome: Outcome{Result: Failed, Cause: hook.Timeout, Err: late, Elapsed: 1999600 * time.Microsecond},
			message: `Internal error occurred: failed calling webhook "w": Timeout after 2s (/w, failurePolicy Fail` + platform + ": late",
		},
		"a failure that is ignored": {
			entry:   chain.Entry{FailurePolicy: chain.Ignore},
			outcome: Outcome{Result: FailedOpen, Cause: hook.Timeout, Err: late},
			warning: `failed calling webhook "w" (Timeout after 0s, /w), failurePolicy Ignore: the request was not checked by it`,
			message: `Internal error occurred: failed calling webhook "w": Timeout after 0s (/w, failurePolicy Ignore` + platform + ": late",
		},
		"a failure that a rule ignores": {
			entry:   chain.Entry{Pending: errors.New("new"), FailurePolicy: chain.Ignore},
			outcome: Outcome{Result: FailedOpen, Cause: hook.Timeout, Err: late, FailOpenRule: "leases"},
			warning: `failed calling webhook "w" (Timeout after 0s, /w), ignored by failOpen rule "leases": the request was not checked by it`,
			message: `Internal error occurred: failed calling webhook "w": Timeout after 0s (/w, ignored by failOpen rule "leases"` + platform + ": late",
		},
		"not ready": {
			entry:   chain.Entry{Pending: errors.New("new"), FailurePolicy: chain.Ignore},
			outcome: Outcome{Result: FailedOpen, Cause: hook.Pending, Err: errors.New("new")},
			warning: `failed calling webhook "w" (Pending after 0s, /w), join WhenReady: the request was not checked by it`,
			message: `Internal error occurred: failed calling webhook "w": Pending after 0s (/w, join WhenReady` + platform + ": new",
		},
		"a refusal": {
			outcome: Outcome{Result: Refused, Cause: hook.BadPatch, Err: errors.New("bad")},
			message: `Internal error occurred: bad (webhook "w", BadPatch, whatever the failurePolicy)`,
		},
		"a refusal, Warn": {
			outcome: Outcome{Result: Softened, Softened: true, Cause: hook.BadPatch, Err: errors.New("bad\nthing")},
			warning: `would be denied if enforced: Internal error occurred: bad thing (webhook "w", BadPatch, whatever the failurePolicy)`,
			message: "Internal error occurred: bad\n  thing (webhook \"w\", BadPatch, whatever the failurePolicy)",
		},
		"a failure, Warn": {
			outcome: Outcome{Result: FailedOpen, Softened: true, Cause: hook.Timeout, Err: late},
			warning: `would be denied if enforced: Internal error occurred: failed calling webhook "w": Timeout after 0s (/w, failurePolicy Fail` + platform + ": late",
			message: `Internal error occurred: failed calling webhook "w": Timeout after 0s (/w, failurePolicy Fail` + platform + ": late",
		},
		"a dry run": {
			outcome: Outcome{Result: Refused, Cause: hook.DryRun, Err: errors.New("no dry run")},
			message: "no dry run",
		},
		"an undecidable match": {
			outcome: Outcome{Result: Refused, Cause: hook.MatchError, Err: errors.New("no key")},
			message: `it cannot be decided whether webhook "w" must be asked: no key (MatchError)`,
		},
		"a skip": {
			outcome: Outcome{Result: Skipped, Cause: hook.MatchError, Err: errors.New("no  key")},
			warning: `webhook "w" was skipped (MatchError): no  key`,
			message: `Internal error occurred: failed calling webhook "w": MatchError after 0s (/w, failurePolicy Fail` + platform + ": no  key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.entry.Name, c.outcome.Webhook = "w", &c.entry
			if got := c.outcome.message(); got != c.message {
				t.Errorf("the message is\n%s, want\n%s", got, c.message)
			}
			if got := c.outcome.warning(); got != c.warning {
				t.Errorf("the warning is\n%s, want\n%s", got, c.warning)
			}
		})
	}
}

// Lines behind the first are indented, unless they are empty; at the end there are none
// that are.
func TestIndented(t *testing.T) {
	for text, want := range map[string]string{
		"":             "",
		"\n\n":         "",
		"a":            "a",
		"a\n":          "a",
		"a\nb":         "a\n  b",
		"a\nb\n\n":     "a\n  b",
		"a\n\n\nb":     "a\n\n\n  b",
		"\na":          "\n  a",
		"a\n  b\n\tc":  "a\n    b\n  \tc",
		"a\r\nb\r\n\n": "a\r\n  b\r",
	} {
		if got := indented(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// A text is cut to whole runes, where there are any.
func TestCutBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 4, "abc"}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""},
		{"äöü", 6, "äöü"}, {"äöü", 5, "äö"}, {"äöü", 4, "äö"}, {"äöü", 1, ""},
		{"a€", 3, "a"}, {"\x80\x80\x80", 2, ""}, {"a\x80\x80\x80", 2, ""},
	} {
		if got := cutBytes(c.text, c.n); got != c.want {
			t.Errorf("%q cut to %d is %q, want %q", c.text, c.n, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, n := rapid.String().Draw(t, "text"), rapid.IntRange(0, 20).Draw(t, "n")
		bytes, runes := cutBytes(text, n), cutRunes(text, n)
		if !strings.HasPrefix(text, bytes) || len(bytes) > n || len(text) > len(bytes) && len(bytes) < n-utf8.UTFMax+1 || !utf8.ValidString(bytes) {
			t.Fatalf("%q cut to %d bytes is %q", text, n, bytes)
		}
		if want := min(n, utf8.RuneCountInString(text)); !strings.HasPrefix(text, runes) || utf8.RuneCountInString(runes) != want {
			t.Fatalf("%q cut to %d runes is %q", text, n, runes)
		}
	})
}

// What the dispatcher notes of its own, in which list, and of whom.
func TestOwnAnnotations(t *testing.T) {
	w := func(name string) *chain.Entry { return &chain.Entry{ID: hook.ID{Configuration: "c", Name: name}} }
	mixed := []Outcome{
		{Webhook: w("fine"), Result: Allowed, Operations: 2},
		{Webhook: w("again"), Result: Allowed, Operations: 1, Round: 1},
		{Webhook: w("open"), Result: FailedOpen, Cause: hook.Timeout},
		{Webhook: w("soft"), Result: Softened, Softened: true},
		{Webhook: w("both"), Result: FailedOpen, Softened: true, Cause: hook.Timeout},
		{Webhook: w("skipped"), Result: Skipped, Cause: hook.DryRun},
		{Webhook: w("given up"), Result: Abandoned},
	}
	const rest = "dispatcher.dev.failed-open: c/open (Timeout, failurePolicy Fail)\n" +
		"dispatcher.dev.softened: c/soft (Denied); c/both (Timeout)\n" +
		"dispatcher.dev.skipped: c/skipped (DryRun)\n"
	for name, c := range map[string]struct {
		outcomes []Outcome
		want     string
	}{
		"nobody":  {nil, ""},
		"allowed": {mixed, rest + "dispatcher.dev.mutated: c/fine (2 operations, round 0); c/again (1 operations, round 1)\n"},
		"denied": {append(mixed[:len(mixed):len(mixed)], Outcome{Webhook: w("no"), Result: Denied}, Outcome{Webhook: w("bad"), Result: Refused, Cause: hook.BadPatch}),
			"dispatcher.dev.denied: c/no (Denied); c/bad (BadPatch)\n" + rest},
	} {
		var got strings.Builder
		for _, a := range ownAnnotations(c.outcomes) {
			got.WriteString(a.Key + ": " + a.Value + "\n")
		}
		if got.String() != c.want {
			t.Errorf("%s: got\n%s, want\n%s", name, got.String(), c.want)
		}
	}
}

// What is cut ends with a word and a mark; a list ends with how many are left out.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"one two three", 13, "one two three"}, {"one two three", 12, "one two ..."}, {"one, two, three", 13, "one, two ..."},
		{"éééé éééé éééé", 13, "éééé éééé ..."}, {"unbroken", 7, "unb ..."}, {"unbroken", 3, " .."},
	} {
		if got := cutWords(c.text, c.n); got != c.want || len([]rune(got)) > c.n {
			t.Errorf("%q at %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
	list := []string{strings.Repeat("a", 20), strings.Repeat("b", 20), strings.Repeat("c", 20)}
	for n, want := range map[int]string{
		64: strings.Join(list, "; "), 63: list[0] + "; " + list[1] + " and 1 more", 60: list[0] + "; " + list[1] + " and 1 more", 58: list[0] + " and 2 more", 20: "aaa and 2 more",
	} {
		if got := listUpTo(list, n); got != want || len(got) > n {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
