// SPDX-License-Identifier: Apache-2.0

package codec

// textScanner is a scanner that also says what strings mean. Their text is
// borrowed from the data, or from scratch where it has escapes.
type textScanner struct {
	scanner
	scratch []byte
}

// key consumes a member's key and colon and returns the key.
func (s *textScanner) key() (key []byte, ok bool) {
	key, escaped, ok := s.quotedKey()
	if escaped && ok {
		key = s.unescape(key)
	}
	return key, ok
}

// text consumes the string at pos and returns it.
func (s *textScanner) text() (text []byte, ok bool) {
	text, escaped, ok := s.quoted()
	if escaped && ok {
		text = s.unescape(text)
	}
	return text, ok
}

// unescape returns the text of raw in scratch. Where scratch grows, what was
// handed out before stays valid in the previous array.
func (s *textScanner) unescape(raw []byte) []byte {
	start := len(s.scratch)
	s.scratch = appendUnescaped(s.scratch, raw)
	return s.scratch[start:len(s.scratch):len(s.scratch)]
}
