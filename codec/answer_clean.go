// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of what one webhook may say (C22 to C25). Texts are in
// runes, annotation keys and values in bytes.
const (
	maxMessage         = 4096
	maxReason          = 128
	maxCauses          = 16
	maxCauseText       = 256
	maxRetryAfter      = 30 // seconds
	maxWarnings        = 16
	maxWarning         = 256
	maxAnnotations     = 32
	maxAnnotationKey   = 63 // as kube-apiserver's
	maxAnnotationValue = 1024
)

// ownPrefix starts the keys of the dispatcher's own annotations, which a webhook
// must not forge.
const ownPrefix = "dispatcher.dev"

// The codes that a denial can have; kube-apiserver replaces lower ones likewise.
const (
	minDenyCode     = 400
	maxDenyCode     = 599
	defaultDenyCode = 400
)

// reply is the response.
type reply struct {
	verdict        bool // the last copy of allowed
	uid, patchType []byte
	patch          patch
	status         status
	warnings       [][]byte // not empty, at most maxWarnings
	annotations    []Label  // those with the lowest keys, sorted, at most maxAnnotations
	dropped        int      // annotations that are not among them
}

// status is what we read of the metav1.Status.
type status struct {
	code, retryAfterSeconds int32
	reason, message         []byte
	causes                  []cause // at most maxCauses
}

type cause struct{ reason, message, field []byte }

// reset empties r, keeping memory for the next one.
func (r *reply) reset() {
	*r = reply{
		status:      status{causes: emptied(r.status.causes, maxCauses)},
		warnings:    emptied(r.warnings, maxWarnings),
		annotations: emptied(r.annotations, maxAnnotations),
	}
}

// annotate takes an audit annotation if it can be passed on: of those with the
// lowest keys, so that an answer with a million of them costs no sorting. Of two
// with one key the later stands.
func (r *reply) annotate(l Label) {
	all := r.annotations
	i, again := slices.BinarySearchFunc(all, l.Key, func(x Label, key []byte) int { return bytes.Compare(x.Key, key) })
	switch {
	case !isAnnotationKey(l.Key), i == maxAnnotations:
		r.dropped++
	case again:
		r.dropped++
		all[i] = l
	case len(all) == maxAnnotations:
		r.dropped++
		copy(all[i+1:], all[i:])
		all[i] = l
	default:
		r.annotations = slices.Insert(all, i, l)
	}
}

// clean returns the response without its patch, within the limits, of which one is how long
// a warning is at most.
func (r *reply) clean(compat Compatibility, longest int) Response {
	resp := Response{Allowed: r.verdict, DroppedAnnotations: r.dropped}
	if !r.verdict {
		r.status.explain(&resp, compat)
	}
	if len(r.warnings) > 0 {
		resp.Warnings = make([]string, len(r.warnings))
	}
	for i, w := range r.warnings {
		resp.Warnings[i] = clean(w, longest)
	}
	for _, l := range r.annotations {
		resp.Annotations = append(resp.Annotations, Annotation{Key: string(l.Key), Value: cutValue(l.Value)})
	}
	return resp
}

// Clean returns resp, which is not Verify's, within the limits of what a webhook may say,
// and without a reason for an allow. Warnings may be as long as messages, as those of
// kube-apiserver's plugins.
func Clean(resp Response) Response {
	said := reply{verdict: resp.Allowed, dropped: resp.DroppedAnnotations}
	said.status = status{
		code: resp.Code, retryAfterSeconds: resp.RetryAfterSeconds, reason: []byte(resp.Reason), message: []byte(resp.Message),
	}
	for _, c := range resp.Causes[:min(len(resp.Causes), maxCauses)] {
		said.status.causes = append(said.status.causes, cause{[]byte(c.Type), []byte(c.Message), []byte(c.Field)})
	}
	for _, w := range resp.Warnings {
		if w != "" && len(said.warnings) < maxWarnings {
			said.warnings = append(said.warnings, []byte(w))
		}
	}
	for _, a := range resp.Annotations {
		said.annotate(Label{Key: []byte(a.Key), Value: []byte(a.Value)})
	}
	cleaned := said.clean(Strict, maxMessage)
	cleaned.Patch = resp.Patch
	return cleaned
}

// CleanText returns text in one line, fit for a message, and cut where a message is.
func CleanText(text string) string { return clean([]byte(text), maxMessage) }

// explain fills in why the answer denies.
func (s *status) explain(resp *Response, compat Compatibility) {
	resp.Code = s.code
	if s.code < minDenyCode || s.code > maxDenyCode && compat == Strict {
		resp.Code = defaultDenyCode
	}
	resp.Reason = clean(s.reason, maxReason)
	resp.Message = cleanLines(s.message, maxMessage)
	resp.RetryAfterSeconds = min(max(s.retryAfterSeconds, 0), maxRetryAfter)
	for _, c := range s.causes {
		resp.Causes = append(resp.Causes, Cause{
			Type:    clean(c.reason, maxCauseText),
			Field:   clean(c.field, maxCauseText),
			Message: cleanLines(c.message, maxCauseText),
		})
	}
}

// isAnnotationKey reports whether key can follow "<webhook>." in the name part of
// a qualified name.
func isAnnotationKey(key []byte) bool {
	if len(key) == 0 || len(key) > maxAnnotationKey || bytes.HasPrefix(key, []byte(ownPrefix)) {
		return false
	}
	for _, c := range key {
		if !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return isAlphanumeric(key[0]) && isAlphanumeric(key[len(key)-1])
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// cutValue returns at most maxAnnotationValue bytes of v, not ending in the
// middle of a rune.
func cutValue(v []byte) string {
	n := len(v)
	if n > maxAnnotationValue {
		for n = maxAnnotationValue; !utf8.RuneStart(v[n]); n-- {
		}
	}
	return string(v[:n])
}

// clean returns at most limit runes of text, fit for one line of a terminal or a
// log: control characters and line separators become spaces, and what changes
// the direction of text becomes U+FFFD, so that it shows.
func clean(text []byte, limit int) string {
	var b strings.Builder
	b.Grow(min(len(text), limit))
	for i := 0; i < len(text) && limit > 0; limit-- {
		r, n := utf8.DecodeRune(text[i:])
		b.WriteRune(visible(r))
		i += n
	}
	return b.String()
}

// cleanLines is clean for a text that may have several lines: policy engines write
// one for each violation. A line ends with LF, CR or both.
func cleanLines(text []byte, limit int) string {
	var b strings.Builder
	b.Grow(min(len(text), limit))
	for i := 0; i < len(text) && limit > 0; limit-- {
		r, n := utf8.DecodeRune(text[i:])
		i += n
		switch {
		case r == '\r' && i < len(text) && text[i] == '\n':
			i++
			b.WriteByte('\n')
		case r == '\r', r == '\n':
			b.WriteByte('\n')
		default:
			b.WriteRune(visible(r))
		}
	}
	return b.String()
}

func visible(r rune) rune {
	switch {
	case r < 0x20, 0x7F <= r && r < 0xA0, r == '\u2028', r == '\u2029':
		return ' '
	case r == '\u061C', r == '\u200E', r == '\u200F',
		'\u202A' <= r && r <= '\u202E', '\u2066' <= r && r <= '\u2069':
		return utf8.RuneError
	}
	return r
}
