// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"strings"
	"sync"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

const (
	space = " \t\r\n"
	null  = "null"
)

// scanner reads a document or a patch, or a part of one. Like encoding/json, and so
// v4, it takes half a surrogate pair for U+FFFD.
type scanner struct{ json.Scanner[string] }

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func scan(text string) *scanner {
	s := scanners.Get().(*scanner)
	s.Reset(text)
	s.Lenient = true
	return s
}

func (s *scanner) release() {
	s.Reset("")
	scanners.Put(s)
}

// readObject calls visit with each member of the JSON object text: the key as
// spelled, quotes included, the value, and how deep the value nests. It reads
// one level, but fails if any of text is not valid JSON.
func readObject(text string, visit func(key, value string, nesting int) error) error {
	s := scan(text)
	defer s.release()
	if s.Next() != '{' {
		return reason("expected a JSON object")
	}
	s.Enter()
	for first := true; s.More(first, '}'); first = false {
		s.Next()
		start := s.Pos
		raw, _, ok := s.Key()
		if !ok {
			break
		}
		key := text[start : start+len(raw)+len(`""`)]
		s.Next()
		start = s.Pos
		if !s.Skip() {
			break
		}
		if err := visit(key, text[start:s.Pos], s.Deepest-s.Depth); err != nil {
			return err
		}
	}
	return s.end()
}

// readArray calls visit with each element of the JSON array text as readObject
// does with members; the element is text[start:end].
func readArray(text string, visit func(start, end, nesting int) error) error {
	s := scan(text)
	defer s.release()
	if s.Next() != '[' {
		return reason("expected a JSON array")
	}
	s.Enter()
	for first := true; s.More(first, ']'); first = false {
		s.Next()
		start := s.Pos
		if !s.Skip() {
			break
		}
		if err := visit(start, s.Pos, s.Deepest-s.Depth); err != nil {
			return err
		}
	}
	return s.end()
}

// end makes sure that nothing was wrong with the text, and that it ends here.
func (s *scanner) end() error {
	if s.Fault != "" || !s.End() {
		return reason(s.SyntaxError())
	}
	return nil
}

// unquote returns what the valid JSON string text stands for.
func unquote(text string) string {
	plain := text[1 : len(text)-1]
	if strings.IndexByte(plain, '\\') < 0 {
		return plain
	}
	return string(json.AppendUnescaped(nil, plain))
}

// quote returns s as a JSON string.
func quote(s string) string {
	return string(json.AppendString(make([]byte, 0, len(s)+len(`""`)), s))
}
