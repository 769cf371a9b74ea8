// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// tokens are the tokens of JSON, read one by one.
type tokens struct{ *bufio.Reader }

var errNoJSON = errors.New("it sent something else than the JSON that was asked for")

// token returns the next byte that is no white space.
func (t tokens) token() (byte, error) {
	for {
		c, err := t.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c, nil
		}
	}
}

// null reads what is left of a null.
func (t tokens) null() error {
	var rest [3]byte
	if _, err := io.ReadFull(t, rest[:]); err != nil {
		return unexpected(err)
	}
	if string(rest[:]) != "ull" {
		return errNoJSON
	}
	return t.literal(nil)
}

// literal reads what is left of a number, true, false or null.
func (t tokens) literal(into *kept) error {
	for {
		c, err := t.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil // the value was all
		}
		if err != nil {
			return err
		}
		switch c {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return t.UnreadByte()
		case '{', '[', '"', ':':
			return errNoJSON
		}
		into.add(c)
	}
}

// rest reads a string whose opening quote has been read. Of one that is longer than
// limit it returns the beginning.
func (t tokens) rest(limit int) (text string, whole bool, err error) {
	if limit == 0 {
		return "", false, t.skipString(nil)
	}
	kept := append(make([]byte, 0, 64), '"')
	for len(kept) < 6*limit+2 { // an escape is six bytes for one at most
		c, err := t.ReadByte()
		if err != nil {
			return "", false, unexpected(err)
		}
		if c == '"' {
			return unescaped(kept, limit)
		}
		kept = append(kept, c)
		if c == '\\' {
			if c, err = t.ReadByte(); err != nil {
				return "", false, unexpected(err)
			}
			kept = append(kept, c)
		}
	}
	ended := t.skipString(nil)
	// What was kept may end in half an escape, or in half a pair of them.
	for i := max(1, len(kept)-12); i < len(kept); i++ {
		if kept[i] == '\\' {
			kept = kept[:i]
		}
	}
	text, _, err = unescaped(kept, limit)
	return text, false, cmp.Or(ended, err)
}

// skipString reads up to the end of a string.
func (t tokens) skipString(into *kept) error {
	for {
		if _, err := t.Peek(1); err != nil {
			return unexpected(err)
		}
		buffered, _ := t.Peek(t.Buffered())
		i := bytes.IndexAny(buffered, "\"\\")
		if i < 0 {
			into.add(buffered...)
			_, _ = t.Discard(len(buffered))
			continue
		}
		end := buffered[i] == '"'
		into.add(buffered[:i+1]...)
		_, _ = t.Discard(i + 1)
		if end {
			return nil
		}
		escaped, err := t.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		into.add(escaped)
	}
}

// unescaped returns the text of a string without its closing quote, cut to the limit.
func unescaped(quoted []byte, limit int) (text string, whole bool, err error) {
	if err := json.Unmarshal(append(quoted, '"'), &text); err != nil {
		return "", false, errNoJSON
	}
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], ""), false, nil
	}
	return text, true, nil
}

// unexpected is the end of the bytes in the middle of a document.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
