// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "encoding/json"

// readObject calls visit with each member of the JSON object text: the key as
// spelled, quotes included, the value, and how deep the value nests. It reads
// one level, but fails if any of text is not valid JSON.
func readObject(text string, visit func(key, value string, nesting int) error) error {
	s := scanner{text: text}
	if !s.next('{') {
		return notJSON(&s, "an object")
	}
	for more := s.peek() != '}'; more; more = s.next(',') {
		start := s.pos
		if !s.string() {
			return notJSON(&s, "a member")
		}
		key := text[start:s.pos]
		if !s.next(':') {
			return notJSON(&s, "a colon")
		}
		start = s.pos
		nesting, ok := s.nested()
		if !ok {
			return notJSON(&s, "a value")
		}
		if err := visit(key, text[start:s.pos], nesting); err != nil {
			return err
		}
	}
	return s.end('}')
}

// readArray calls visit with each element of the JSON array text as readObject
// does with members; the element is text[start:end].
func readArray(text string, visit func(start, end, nesting int) error) error {
	s := scanner{text: text}
	if !s.next('[') {
		return notJSON(&s, "an array")
	}
	for more := s.peek() != ']'; more; more = s.next(',') {
		start := s.pos
		nesting, ok := s.nested()
		if !ok {
			return notJSON(&s, "a value")
		}
		if err := visit(start, s.pos, nesting); err != nil {
			return err
		}
	}
	return s.end(']')
}

// nested skips a value inside one container and returns how deep it nests.
func (s *scanner) nested() (nesting int, ok bool) {
	s.deepest = 1
	ok = s.value(1)
	return s.deepest - 1, ok
}

// end skips the end of a container, behind which nothing may stand.
func (s *scanner) end(c byte) error {
	if !s.next(c) {
		return notJSON(s, "a comma or the end")
	}
	if s.pos < len(s.text) {
		return notJSON(s, "nothing more")
	}
	return nil
}

func notJSON(s *scanner, expected string) error {
	if s.deepest > maxNesting {
		return reasonf("JSON nested deeper than %d", maxNesting)
	}
	return reasonf("invalid JSON: expected %s at byte %d", expected, s.pos)
}

// unquote returns what the valid JSON string text stands for.
func unquote(text string) string {
	plain := text[1 : len(text)-1]
	for i := range len(plain) {
		if plain[i] == '\\' {
			return unescape(text)
		}
	}
	return plain
}

func unescape(text string) string {
	var s string
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return "" // not reached: text is a valid JSON string
	}
	return s
}

// quote returns s as a JSON string.
func quote(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return escape(s)
		}
	}
	return `"` + s + `"`
}

func escape(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		return `""` // not reached: every string has a JSON form
	}
	return string(text)
}
