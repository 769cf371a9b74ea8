// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// readAnswer reads the whole answer, in the encoding that its first bytes tell. What it
// has understood of an unreadable one may still deny.
func readAnswer(a *answer) {
	body := a.Data
	var ok bool
	switch {
	case bytes.HasPrefix(body, []byte(envelopeMagic)):
		ok = protobufAnswer{a}.read()
	case bytes.HasPrefix(bytes.TrimLeftFunc(body, unicode.IsSpace), []byte("{")):
		ok = jsonAnswer{a}.read()
	default:
		ok = readYAML(a)
	}
	if !ok {
		a.saysFalse = a.saysFalse || MentionsDenial(body)
	}
}

// maxYAML is the size of the largest answer that is read as YAML, in bytes: that
// takes 50 times as long as JSON does.
const maxYAML = 64 << 10

// readYAML reads what is neither JSON nor protobuf as kube-apiserver does: by
// making JSON of it. Aliases, by which a small document can be made a large one,
// are not read.
func readYAML(a *answer) bool {
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
	return jsonAnswer{a}.read()
}

// MentionsDenial reports whether text, which need not be a whole answer, has a
// member `allowed` that is false. An escaped quote, as in a message that quotes an
// answer, makes none.
func MentionsDenial(text []byte) bool {
	for {
		i := bytes.Index(text, []byte("llowed"))
		if i < 0 {
			return false
		}
		rest := text[i+len("llowed"):]
		if i > 0 && text[i-1]|0x20 == 'a' && isFalse(rest) {
			return true
		}
		text = rest
	}
}

// isFalse reports whether what follows a key, with its closing quote if it has
// one, makes it false.
func isFalse(rest []byte) bool {
	if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
		rest = rest[1:]
	}
	rest, ok := bytes.CutPrefix(trimSpace(rest), []byte(":"))
	rest = trimSpace(rest)
	return ok && len(rest) >= len("false") && bytes.EqualFold(rest[:len("false")], []byte("false"))
}

// trimSpace cuts leading white space, of which a peer could send megabytes, but
// not between a key and its value.
func trimSpace(text []byte) []byte {
	const most = 1024
	n := 0
	for n < len(text) && n < most && json.IsSpace(text[n]) {
		n++
	}
	return text[n:]
}
