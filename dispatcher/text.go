// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// message is what a user reads about an Outcome that denies, or would but for the
// mode Warn. It begins a line; those that follow it are indented, so that nothing
// that a webhook writes passes for the message of another. The texts that users of
// kube-apiserver search for are kept; a platform failure says that it is one.
func (o *Outcome) message() string { return indented(o.text()) }

// indented returns text with all lines but the first indented, and without empty
// ones at its end.
func indented(text string) string {
	text = strings.TrimRight(text, "\n")
	if !strings.Contains(text, "\n") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if b.Len() > 0 && line != "\n" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}

func (o *Outcome) text() string {
	switch {
	case o.Err == nil:
		return o.Webhook.Denial(o.Response.Message, o.Response.Reason)
	case o.Result == Refused || o.Result == Softened:
		return o.refusal()
	}
	// Who cuts it cuts what is least needed, the foreign error.
	return fmt.Sprintf("Internal error occurred: failed calling %s: %s %s (%s, %s; this is a platform problem, not a decision of the %s): %v",
		o.Webhook.Called(), o.Cause, o.after(), o.Webhook.Label(), o.policy(), cmp.Or(o.Webhook.Noun, "webhook"), o.Err)
}

func (o *Outcome) refusal() string {
	switch o.Cause {
	case hook.DryRun:
		return o.Err.Error()
	case hook.MatchError:
		return fmt.Sprintf("it cannot be decided whether %s must be asked: %v (%s)", o.Webhook.Called(), o.Err, o.Cause)
	}
	return fmt.Sprintf("Internal error occurred: %v (%s, %s, whatever the failurePolicy)", o.Err, o.Webhook.Called(), o.Cause)
}

func (o *Outcome) after() string {
	return "after " + o.Elapsed.Round(time.Millisecond).String()
}

func (o *Outcome) policy() string {
	switch {
	case o.FailOpenRule != "":
		return fmt.Sprintf("ignored by failOpen rule %q", o.FailOpenRule)
	case o.Webhook.Pending != nil:
		return "join " + chain.JoinWhenReady.String()
	case o.Webhook.FailurePolicy == chain.Ignore:
		return "failurePolicy Ignore"
	}
	return "failurePolicy Fail"
}

// warning is what a user reads about an Outcome that did not deny but that must
// not be silent, in one line; empty if there is nothing to say.
func (o *Outcome) warning() string {
	text := ""
	switch {
	case o.Softened:
		text = "would be denied if enforced: " + o.text()
	case o.Result == FailedOpen:
		text = fmt.Sprintf("failed calling %s (%s %s, %s), %s: the request was not checked by it", o.Webhook.Called(), o.Cause, o.after(), o.Webhook.Label(), o.policy())
	case o.Result == Skipped:
		text = fmt.Sprintf("%s was skipped (%s): %v", o.Webhook.Called(), o.Cause, o.Err)
	}
	if strings.Contains(text, "\n") {
		return strings.Join(strings.Fields(text), " ")
	}
	return text
}

// The caller passes on 4,096 runes of warnings together and cuts each to 256
// once that is exceeded; so nothing of ours may be among what is cut. Webhooks' own are no
// longer than 256 runes (C24), those of policies and plugins may be.
const (
	maxWarningRunes  = 256
	maxWarningsRunes = 4096
)

// warningsOf returns our own warnings, then the webhooks', within the caller's
// limits.
func warningsOf(outcomes []Outcome) []string {
	var all []string
	runes := 0
	add := func(text string) {
		if text != "" {
			all = append(all, text)
			runes += utf8.RuneCountInString(text)
		}
	}
	for i := range outcomes {
		add(outcomes[i].warning())
	}
	for i := range outcomes {
		for _, w := range outcomes[i].Response.Warnings {
			add(w)
		}
	}
	if runes <= maxWarningsRunes {
		return all
	}
	left := maxWarningsRunes
	for i, text := range all {
		if left == 0 {
			return all[:i]
		}
		all[i] = cutWords(text, min(maxWarningRunes, left))
		left -= utf8.RuneCountInString(all[i])
	}
	return all
}

// cutMark ends a text of which words were cut.
const cutMark = " ..."

// cutWords returns at most n runes of s, which end with a word and a mark if that is not
// all. A word that leaves no other is cut.
func cutWords(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	head := cutRunes(s, max(n-len(cutMark), 0))
	if end := strings.LastIndexByte(head, ' '); end > len(head)/2 {
		head = head[:end]
	}
	return cutRunes(strings.TrimRight(head, " ,;:(")+cutMark, n)
}

// cutRunes returns the first n runes of s.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// denier says that and how the Outcome denies, without a word of the webhook's.
func (o *Outcome) denier() string { return fmt.Sprintf("%s (%s)", o.Webhook.Label(), causeType(o)) }

// cutBytes returns at most n bytes of s, not ending in the middle of a rune.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
