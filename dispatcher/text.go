// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
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
	return fmt.Sprintf("Internal error occurred: failed calling %s: %v (%s %s; %s; this is a platform problem, not a decision of the %s)",
		o.Webhook.Called(), o.Err, o.Cause, o.after(), o.policy(), cmp.Or(o.Webhook.Noun, "webhook"))
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
		text = fmt.Sprintf("failed calling %s (%s %s), %s: the request was not checked by it", o.Webhook.Called(), o.Cause, o.after(), o.policy())
	case o.Result == Skipped:
		text = fmt.Sprintf("%s was skipped (%s): %v", o.Webhook.Called(), o.Cause, o.Err)
	}
	if strings.Contains(text, "\n") {
		return strings.Join(strings.Fields(text), " ")
	}
	return text
}

// The caller passes on 4,096 runes of warnings together and cuts each to 256
// once that is exceeded; so nothing of ours may be among what is cut.
const (
	maxWarningRunes  = 256
	maxWarningsRunes = 4096
)

// warningsOf returns our own warnings, then the webhooks', within the caller's
// limits.
func warningsOf(outcomes []Outcome) []string {
	var all []string
	left := maxWarningsRunes
	add := func(text string) {
		if text == "" || left == 0 {
			return
		}
		text = cutRunes(text, min(maxWarningRunes, left))
		left -= utf8.RuneCountInString(text)
		all = append(all, text)
	}
	for i := range outcomes {
		add(outcomes[i].warning())
	}
	for i := range outcomes {
		for _, w := range outcomes[i].Response.Warnings {
			add(w)
		}
	}
	return all
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

// Our own audit annotations. The caller puts the name of its webhook and a slash
// in front, so a key of ours must not have one. Each lists all webhooks that it
// holds for.
const (
	annotationPrefix   = "dispatcher.dev."
	bypassAnnotation   = annotationPrefix + "bypass"
	snapshotAnnotation = annotationPrefix + "snapshot"
	failOpenAnnotation = annotationPrefix + "failed-open"
	softenedAnnotation = annotationPrefix + "softened"
	skippedAnnotation  = annotationPrefix + "skipped"
	deniedAnnotation   = annotationPrefix + "denied"
	mutatedAnnotation  = annotationPrefix + "mutated"
	droppedAnnotation  = annotationPrefix + "dropped-annotations"
)

const (
	maxAnnotationKey   = 63 // bytes; a longer key is dropped by the caller
	maxAnnotationValue = 1024
	maxAnnotations     = 128 // of all webhooks together
)

// annotationsOf returns our own audit annotations, then the webhooks', with keys
// that are unique and survive the caller, and how many were dropped.
func annotationsOf(outcomes []Outcome, snapshot string) (all []codec.Annotation, dropped int) {
	all = ownAnnotations(outcomes)
	taken := map[string]*chain.Entry{}
	for i := range outcomes {
		o := &outcomes[i]
		dropped += o.Response.DroppedAnnotations
		for _, kv := range o.Response.Annotations {
			key := annotationKey(o.Webhook, kv.Key, taken)
			if key == "" {
				dropped++
				continue
			}
			all = append(all, codec.Annotation{Key: key, Value: kv.Value})
		}
	}
	if dropped > 0 {
		all = append(all, codec.Annotation{Key: droppedAnnotation, Value: fmt.Sprint(dropped)})
	}
	if len(all) > 0 {
		all = append(all, codec.Annotation{Key: snapshotAnnotation, Value: snapshot})
	}
	return all, dropped
}

// annotationKey returns "<webhook>.<key>" and takes it, with a hashed tail where
// that is too long or another webhook of this name has taken it. It returns ""
// where there is no room, and where w itself has taken it: a reinvocation repeats
// the keys of the first round, and the first one stands.
func annotationKey(w *chain.Entry, key string, taken map[string]*chain.Entry) string {
	full := w.Name + "." + key
	if owner := taken[full]; len(full) > maxAnnotationKey || (owner != nil && owner != w) {
		full = hashedTail(full, w.Configuration)
	}
	if taken[full] != nil || len(taken) == maxAnnotations {
		return ""
	}
	taken[full] = w
	return full
}

func hashedTail(key, configuration string) string {
	sum := sha256.Sum256([]byte(configuration + "/" + key))
	tail := "." + hex.EncodeToString(sum[:4])
	head := key[:min(len(key), maxAnnotationKey-len(tail))]
	return strings.TrimRight(head, ".-_") + tail
}

// denier says that and how the Outcome denies, without a word of the webhook's.
func (o *Outcome) denier() string { return fmt.Sprintf("%s (%s)", o.Webhook.Name, causeType(o)) }

// ownAnnotations returns what the dispatcher itself has to say, in a fixed order.
func ownAnnotations(outcomes []Outcome) []codec.Annotation {
	var all []codec.Annotation
	list := func(key string, say func(*Outcome) string) {
		var parts []string
		for i := range outcomes {
			if text := say(&outcomes[i]); text != "" {
				parts = append(parts, text)
			}
		}
		if len(parts) > 0 {
			value := cutBytes(strings.Join(parts, "; "), maxAnnotationValue)
			all = append(all, codec.Annotation{Key: key, Value: value})
		}
	}
	list(deniedAnnotation, func(o *Outcome) string {
		if !o.Denies() {
			return ""
		}
		return o.denier()
	})
	list(failOpenAnnotation, func(o *Outcome) string {
		if o.Result != FailedOpen || o.Softened { // that is in the next list
			return ""
		}
		return fmt.Sprintf("%s (%s, %s)", o.Webhook.Name, o.Cause, o.policy())
	})
	list(softenedAnnotation, func(o *Outcome) string {
		if !o.Softened {
			return ""
		}
		return fmt.Sprintf("%s (%s)", o.Webhook.Name, causeType(o))
	})
	list(skippedAnnotation, func(o *Outcome) string {
		if o.Result != Skipped {
			return ""
		}
		return fmt.Sprintf("%s (%s)", o.Webhook.Name, o.Cause)
	})
	denied := slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Denies() })
	list(mutatedAnnotation, func(o *Outcome) string {
		if o.Operations == 0 || denied {
			return ""
		}
		return fmt.Sprintf("%s/%s (%d operations, round %d)", o.Webhook.Configuration, o.Webhook.Name, o.Operations, o.Round)
	})
	return all
}

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
