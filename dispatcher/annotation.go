// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
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
