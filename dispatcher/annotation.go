// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

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
	failuresAnnotation = annotationPrefix + "validation-failures"
)

const (
	maxAnnotationKey   = 63 // bytes; a longer key is dropped by the caller
	maxAnnotationValue = 1024
	maxAnnotations     = 128 // of all webhooks together
	maxFailures        = 50  // of all policies together, as in kube-apiserver
)

// annotationsOf returns our own audit annotations, then the webhooks', with keys
// that are unique and survive the caller, and how many were dropped.
func annotationsOf(outcomes []Outcome, snapshot string) (all []codec.Annotation, dropped int) {
	all = ownAnnotations(outcomes)
	taken := map[string]*claimed{}
	for i := range outcomes {
		o := &outcomes[i]
		dropped += o.Response.DroppedAnnotations
		for _, kv := range o.Response.Annotations {
			if isFailure(o.Webhook, kv) {
				continue // they are in a list of our own
			}
			key, joined := annotationKey(o.Webhook, kv.Key, i, taken)
			switch {
			case joined:
				taken[key].join(&all[taken[key].at], kv.Value)
			case key == "":
				dropped++
			default:
				taken[key].at, taken[key].values = len(all), []string{kv.Value}
				all = append(all, codec.Annotation{Key: key, Value: kv.Value})
			}
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

// claimed is a key that somebody has taken.
type claimed struct {
	by     *chain.Entry
	of     int      // the outcome
	at     int      // where the annotation is
	values []string // that it has
}

// join adds a value to the annotation, each once, as kube-apiserver puts together what
// the bindings of a policy say.
func (c *claimed) join(to *codec.Annotation, value string) {
	if !slices.Contains(c.values, value) {
		c.values = append(c.values, value)
		to.Value += ", " + value
	}
}

// sharesWith reports whether what w says under the key, in an outcome, is put together with
// that: of several bindings of a policy, and of several params of one.
func (c *claimed) sharesWith(w *chain.Entry, outcome int) bool {
	return c != nil && (c.by != w || c.of == outcome) && w.Audited != "" && c.by.Audited == w.Audited
}

// annotationKey returns "<webhook>.<key>" and takes it, with a hashed tail where
// that is too long or another webhook of this name has taken it. It returns ""
// where there is no room, and where w itself has taken it: a reinvocation repeats
// the keys of the first round, and the first one stands. Those that are audited under
// one name share their keys: joined says that another one has taken it.
func annotationKey(w *chain.Entry, key string, outcome int, taken map[string]*claimed) (full string, joined bool) {
	full = cmp.Or(w.Audited, w.Name) + "." + key
	owner := taken[full]
	if len(full) > maxAnnotationKey || owner != nil && owner.by != w && !owner.sharesWith(w, outcome) {
		full = hashedTail(full, w.Configuration)
		owner = taken[full]
	}
	switch {
	case owner.sharesWith(w, outcome):
		return full, true
	case owner != nil, len(taken) == maxAnnotations:
		return "", false
	}
	taken[full] = &claimed{by: w, of: outcome}
	return full, false
}

func hashedTail(key, configuration string) string {
	sum := sha256.Sum256([]byte(configuration + "/" + key))
	tail := "." + hex.EncodeToString(sum[:4])
	head := key[:min(len(key), maxAnnotationKey-len(tail))]
	return strings.TrimRight(head, ".-_") + tail
}

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
			all = append(all, codec.Annotation{Key: key, Value: listUpTo(parts, maxAnnotationValue)})
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
		return fmt.Sprintf("%s (%s, %s)", o.Webhook.Label(), o.Cause, o.policy())
	})
	list(softenedAnnotation, func(o *Outcome) string {
		if !o.Softened {
			return ""
		}
		return fmt.Sprintf("%s (%s)", o.Webhook.Label(), causeType(o))
	})
	list(skippedAnnotation, func(o *Outcome) string {
		if o.Result != Skipped {
			return ""
		}
		return fmt.Sprintf("%s (%s)", o.Webhook.Label(), o.Cause)
	})
	denied := slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Denies() })
	list(mutatedAnnotation, func(o *Outcome) string {
		if o.Operations == 0 || denied {
			return ""
		}
		return fmt.Sprintf("%s (%d operations, round %d)", o.Webhook.Label(), o.Operations, o.Round)
	})
	return appendFailures(all, outcomes)
}

// appendFailures adds what policies audit, as one list in JSON.
func appendFailures(all []codec.Annotation, outcomes []Outcome) []codec.Annotation {
	var failures []string
	for i := range outcomes {
		for _, kv := range outcomes[i].Response.Annotations {
			if isFailure(outcomes[i].Webhook, kv) && len(failures) < maxFailures {
				failures = append(failures, kv.Value)
			}
		}
	}
	if len(failures) == 0 {
		return all
	}
	return append(all, codec.Annotation{Key: failuresAnnotation, Value: "[" + strings.Join(failures, ",") + "]"})
}

func isFailure(w *chain.Entry, kv codec.Annotation) bool {
	return kv.Key == hook.FailureKey && w.Audited != ""
}

// listUpTo lists the parts in at most limit bytes: those that do not fit are counted.
func listUpTo(parts []string, limit int) string {
	const separator, room = "; ", len(" and 1234567 more")
	text := strings.Join(parts, separator)
	if len(text) <= limit {
		return text
	}
	text = cutBytes(parts[0], limit-room)
	for i, part := range parts[1:] {
		if len(text)+len(separator)+len(part) > limit-room {
			return fmt.Sprintf("%s and %d more", text, len(parts)-1-i)
		}
		text += separator + part
	}
	return text
}
