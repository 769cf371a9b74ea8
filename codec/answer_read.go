// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	stdjson "encoding/json"
	"sync"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// answer is what a webhook's answer says, and what is wrong with how it says it.
// It borrows from the body and from its own scratch.
type answer struct {
	json.Reader
	findings
	reply
}

// findings are what an answer is about and what was read of it beside the reply: all
// that must not get into the next one.
type findings struct {
	want Expectation

	protobuf   bool
	unreadable string // why there is no whole document
	badType    string // the first value that kube-apiserver cannot decode
	ambiguous  string // the first thing that readers read differently; kube-apiserver accepts it

	apiVersion, kind  []byte
	folded            bool // kind or apiVersion came in a case variant
	response, allowed spelling
	absent            bool  // the response is null
	badBase64         bool  // any copy of the patch
	saysFalse         bool  // any copy of allowed, in any spelling, is false
	cause             cause // the one being read
	annotation        Label // likewise
}

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

// spelling tells in which spellings a key came.
type spelling struct{ exact, variant bool }

func (s *spelling) note(variant bool) {
	s.exact = s.exact || !variant
	s.variant = s.variant || variant
}

// onlyVariant reports whether only a reader that ignores case sees the key.
func (s spelling) onlyVariant() bool { return s.variant && !s.exact }

// status is what we read of the metav1.Status.
type status struct {
	code, retryAfterSeconds int32
	reason, message         []byte
	causes                  []cause // at most maxCauses
}

type cause struct{ reason, message, field []byte }

var answers = sync.Pool{New: func() any { return new(answer) }}

// maxPooledAnswerScratch is what a pooled answer keeps: room for every reasonable
// one.
const maxPooledAnswerScratch = 16 << 10

func acquireAnswer(body []byte, want Expectation) *answer {
	a := answers.Get().(*answer)
	a.Reset(body)
	a.want, a.Lenient = want, true
	return a
}

func (a *answer) release() {
	a.Reset(nil)
	a.Scratch = emptied(a.Scratch, maxPooledAnswerScratch)
	a.findings = findings{}
	a.reset()
	answers.Put(a)
}

// reset empties r, keeping memory for the next one.
func (r *reply) reset() {
	*r = reply{
		status:      status{causes: emptied(r.status.causes, maxCauses)},
		warnings:    emptied(r.warnings, maxWarnings),
		annotations: emptied(r.annotations, maxAnnotations),
	}
}

// read reads the whole answer, in the encoding that its first bytes tell. What it
// has understood of an unreadable one may still deny.
func (a *answer) read() {
	body := a.Data
	var ok bool
	switch {
	case bytes.HasPrefix(body, []byte(envelopeMagic)):
		a.protobuf = true
		if ok = a.readProtobuf(); !ok {
			a.unreadable = "not Kubernetes' protobuf: " + a.Fault
		}
	case bytes.HasPrefix(bytes.TrimLeftFunc(body, unicode.IsSpace), []byte("{")):
		if ok = a.readJSON(); !ok {
			a.unreadable = a.SyntaxError()
		}
	default:
		ok = a.readYAML()
	}
	if !ok {
		a.saysFalse = a.saysFalse || MentionsDenial(body)
	}
}

func (a *answer) readJSON() bool {
	if !utf8.Valid(a.Data) {
		a.ambiguous = "the answer is not UTF-8"
		a.Data = bytes.ToValidUTF8(a.Data, []byte("\uFFFD"))
	}
	ok := a.readObject("the answer", &answerFields) && a.End()
	if a.Halved {
		a.readsDifferently("the answer has a surrogate escape without its other half")
	}
	return ok
}

// maxYAML is the size of the largest answer that is read as YAML, in bytes: that
// takes 50 times as long as JSON does.
const maxYAML = 64 << 10

// readYAML reads what is neither JSON nor protobuf as kube-apiserver does: by
// making JSON of it. Aliases, by which a small document can be made a large one,
// are not read.
func (a *answer) readYAML() bool {
	text := a.Data
	if len(text) > maxYAML || bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0 {
		a.unreadable = "neither JSON nor protobuf, nor YAML of at most 64 KiB without aliases"
		return false
	}
	converted, err := yaml.YAMLToJSON(text)
	if err != nil || converted[0] != '{' {
		a.unreadable = "neither JSON nor protobuf, nor an object in YAML"
		return false
	}
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		a.ambiguous = "the answer is YAML that has a key twice"
		a.saysFalse = MentionsDenial(text)
	}
	a.Data = converted
	if !a.readJSON() {
		a.unreadable = a.SyntaxError()
		return false
	}
	return true
}

// members reads the object at pos. A field that occurs twice or under another
// spelling is read all the same: it may deny.
func (a *answer) members(t *table[*answer]) bool {
	if !a.Enter() {
		return false
	}
	var seen uint32
	expected, first := 0, true
	for ; a.More(first, '}'); first = false {
		key, ok := a.Key()
		if !ok {
			return false
		}
		i := t.find(key, expected)
		if i < 0 {
			if !a.unknown(t, key) {
				return false
			}
			continue
		}
		if seen&(1<<i) != 0 {
			a.readsDifferently("the answer has the key " + t.fields[i].name + " twice")
		}
		seen |= 1 << i
		expected = i + 1
		if !t.fields[i].read(a) {
			return false
		}
	}
	return a.Fault == ""
}

// unknown skips the value of a key that t does not have. Of a case variant all
// that matters is whether it denies.
func (a *answer) unknown(t *table[*answer], key []byte) bool {
	a.Next()
	start := a.Pos
	if !a.Skip() {
		return false
	}
	i := t.variant(key)
	if i < 0 {
		return true
	}
	a.readsDifferently("the answer has a case variant of the key " + t.fields[i].name)
	if take := t.fields[i].folded; take != nil {
		take(a, a.Data[start:a.Pos])
	}
	return true
}

// readsDifferently records what readers read differently.
func (a *answer) readsDifferently(what string) {
	if a.ambiguous == "" {
		a.ambiguous = what
	}
}

// found records that kube-apiserver cannot decode a value.
func (a *answer) found(defect string) {
	if a.badType == "" {
		a.badType = defect
	}
}

// wrongType records that the value of name is not what it must be, and skips it.
func (a *answer) wrongType(name, must string) bool {
	a.found(name + " must be " + must)
	return a.Skip()
}

// interpreted is what kube-apiserver takes for kind and apiVersion as it chooses
// what to decode: there it ignores case. ok: it could be decoded.
func (a *answer) interpreted() (kind, apiVersion []byte, ok bool) {
	if !a.folded {
		return a.kind, a.apiVersion, true
	}
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	err := stdjson.Unmarshal(a.Data, &meta)
	return []byte(meta.Kind), []byte(meta.APIVersion), err == nil
}
