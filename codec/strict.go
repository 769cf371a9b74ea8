// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/admission-dispatcher/dispatcher/codec/json"

// strict reads JSON in which every key must be unique. What it reads with returns false
// after an EnvelopeError, which ends the pass; a RequestError does not, because an
// EnvelopeError further on would outweigh it.
type strict struct {
	json.Reader
	faults
	keys [][]byte // of the open objects whose keys must be unique
}

// faults are what is wrong with a document, and where its reader is.
type faults struct {
	at       pointer
	entries  int // noted by count
	envelope *EnvelopeError
	request  *RequestError // the first
}

// maxEntries is how many keys that must be unique, labels and list elements a review
// may have: more than fit into the largest objects, and each takes several times the
// memory of the bytes that it is written with.
const maxEntries = 1 << 20

// count notes one more key or element to keep.
func (f *faults) count() bool {
	f.entries++
	return f.entries <= maxEntries || f.refuse(f.at.String(), "more than 1,048,576 keys and elements are to be read")
}

// refuse ends the pass with an EnvelopeError about the value at pointer.
func (f *faults) refuse(pointer, reason string) bool {
	if f.envelope == nil {
		f.envelope = &EnvelopeError{Pointer: pointer, Reason: reason}
	}
	return false
}

// refuseMember is refuse for a member whose key the sender made up.
func (f *faults) refuseMember(key []byte, reason string) bool {
	if f.envelope == nil {
		f.envelope = &EnvelopeError{Pointer: f.at.String(), Member: quoted(key), Reason: reason}
	}
	return false
}

// reject records a RequestError about the value being read and skips that. There may be
// millions of those.
func (s *strict) reject(reason string) bool {
	if s.request == nil {
		s.request = &RequestError{Pointer: s.at.String(), Reason: reason}
	}
	return s.Skip()
}

// refuseValue refuses the value being read, unless it is not JSON at all.
func (s *strict) refuseValue(reason string) bool {
	return s.Skip() && s.refuse(s.at.String(), reason)
}

// err returns what ended the pass, or what was recorded on the way.
func (s *strict) err() error {
	switch {
	case s.envelope != nil:
		return s.envelope
	case s.Fault == json.FaultUTF8: // which is found later than it is passed
		return &EnvelopeError{Reason: s.SyntaxError()}
	case s.Fault != "":
		return &EnvelopeError{Pointer: s.at.String(), Reason: s.SyntaxError()}
	case s.request != nil:
		return s.request
	}
	return nil
}

// asRequestError returns what went wrong with an object that is in no envelope.
func (s *strict) asRequestError() error {
	switch e := s.err().(type) {
	case *EnvelopeError:
		return &RequestError{Pointer: e.Pointer, Member: e.Member, Reason: e.Reason}
	default:
		return e
	}
}

// uniqueSince makes sure that the keys from base on are unique, and forgets them.
func (s *strict) uniqueSince(base int) bool {
	if key := json.FirstDuplicate(s.keys[base:]); key != nil {
		return s.duplicate(key)
	}
	clear(s.keys[base:])
	s.keys = s.keys[:base]
	return true
}

func (s *strict) duplicate(key []byte) bool { return s.refuseMember(key, duplicateKey) }

const duplicateKey = "duplicate key"

// required consumes a string without which there is no answer.
func (s *strict) required() (text []byte, ok bool) {
	if s.Next() != '"' {
		return nil, s.refuseValue("must be a string")
	}
	return s.Text()
}

// readString reads a string into dst. Null is absent, as for Go's decoders.
func (s *strict) readString(dst *[]byte) (ok bool) {
	switch s.Next() {
	case '"':
		*dst, ok = s.Text()
		return ok
	case 'n':
		return s.Skip()
	}
	return s.reject("must be a string")
}

// readStrings appends the elements of an array of strings to dst. It is a loop of its own,
// as are the labels: with Each and Elements decoding a pod took 3 % longer.
func (s *strict) readStrings(dst *[][]byte) bool {
	const must = "must be an array of strings"
	switch s.Next() {
	case '[':
	case 'n':
		return s.Skip()
	default:
		return s.reject(must)
	}
	if !s.Enter() {
		return false
	}
	for first := true; s.More(first, ']'); first = false {
		if s.Next() != '"' {
			if !s.reject(must) {
				return false
			}
			continue
		}
		text, ok := s.Text()
		if !ok || !s.count() {
			return false
		}
		*dst = append(*dst, text)
	}
	return s.Fault == ""
}

// strictObject reads an object whose members t knows, by the readers of D.
func strictObject[D any](s *strict, d D, t *table[D]) bool {
	switch s.Next() {
	case '{':
		return strictMembers(s, d, t)
	case 'n':
		return s.Skip()
	}
	return s.reject("must be an object")
}

// strictMembers reads the object at Pos: what t knows by the readers of D, the rest by
// skipping it.
func strictMembers[D any](s *strict, d D, t *table[D]) bool {
	if !s.Enter() {
		return false
	}
	var seen uint32 // a bit per field
	expected, base := 0, len(s.keys)
	first := true
	for ; s.More(first, '}'); first = false {
		i := expected
		if i >= len(t.fields) || !s.Expects(t.fields[i].name) {
			key, ok := s.Key()
			if !ok {
				return false
			}
			if i = t.find(key, expected); i < 0 {
				if !strictUnknown(s, t, key) {
					return false
				}
				continue
			}
		}
		if seen&(1<<i) != 0 {
			return s.refuse(s.at.member(t.fields[i].name), duplicateKey)
		}
		seen |= 1 << i
		expected = i + 1
		s.at.push(t.fields[i].name)
		if !t.fields[i].read(d) {
			return false
		}
		s.at.pop()
	}
	return s.Fault == "" && s.uniqueSince(base)
}

// strictUnknown skips the value of a key that t does not have.
func strictUnknown[D any](s *strict, t *table[D], key []byte) bool {
	if i := t.variant(key); i >= 0 {
		return s.refuseMember(key, "the key is a case variant of "+t.fields[i].name)
	}
	if t.foreign {
		return s.SkipForeign()
	}
	if t.unique {
		if !s.count() {
			return false
		}
		s.keys = append(s.keys, key)
	}
	return s.Skip()
}
