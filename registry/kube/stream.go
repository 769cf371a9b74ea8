// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// document reads JSON from a cluster's API piece by piece and drops what nobody
// asked for while it reads: an object of any size takes a few kilobytes. Its caller
// bounds the bytes. It is lenient about what it drops: only brackets and strings
// count there.
type document struct{ from *bufio.Reader }

const (
	documentBuffer = 4 << 10
	// maxKey is the longest key of a label (a DNS subdomain, a slash and a name) and
	// longer than every other key that is looked for.
	maxKey = 253 + 1 + 63
	// maxValue is the longest value of a label, and of a name.
	maxValue = 63
	// maxToken bounds a continue token and a resourceVersion.
	maxToken = 16 << 10
)

var errNoJSON = errors.New("it sent something else than the JSON that was asked for")

func newDocument(r io.Reader) *document { return &document{bufio.NewReaderSize(r, documentBuffer)} }

// object calls member for each member of an object, which must read its value; a
// null is an object without any.
func (d *document) object(member func(key string) error) error {
	opened, err := d.open('{')
	if err != nil || !opened {
		return err
	}
	for first := true; ; first = false {
		c, err := d.token()
		switch {
		case err != nil:
			return err
		case c == '}':
			return nil
		case c == ',' && !first:
			if c, err = d.token(); err != nil {
				return err
			}
		case !first:
			return errNoJSON
		}
		if c != '"' {
			return errNoJSON
		}
		key, whole, err := d.rest(maxKey)
		if err != nil {
			return err
		}
		if !whole {
			key = "" // longer than any that is looked for
		}
		if c, err = d.token(); err != nil || c != ':' {
			return malformed(err)
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// array calls element for each element of an array, which must read it; a null is
// an array without any.
func (d *document) array(element func() error) error {
	opened, err := d.open('[')
	if err != nil || !opened {
		return err
	}
	for first := true; ; first = false {
		c, err := d.token()
		switch {
		case err != nil:
			return err
		case c == ']':
			return nil
		case c == ',' && !first:
		case first:
			if err := d.from.UnreadByte(); err != nil {
				return err
			}
		default:
			return errNoJSON
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// open reads the opening bracket, or a null.
func (d *document) open(bracket byte) (opened bool, err error) {
	switch c, err := d.token(); {
	case err != nil:
		return false, err
	case c == bracket:
		return true, nil
	case c == 'n':
		return false, d.null()
	}
	return false, errNoJSON
}

// null reads what is left of a null.
func (d *document) null() error {
	var rest [3]byte
	if _, err := io.ReadFull(d.from, rest[:]); err != nil {
		return unexpected(err)
	}
	if string(rest[:]) != "ull" {
		return errNoJSON
	}
	return d.literal()
}

// text reads a string. Of one that is longer than limit, in bytes, it returns the
// beginning, also if the rest cannot be read. Any other value is "".
func (d *document) text(limit int) (text string, whole bool, err error) {
	c, err := d.token()
	if err != nil {
		return "", false, err
	}
	if c != '"' {
		return "", true, d.skipAfter(c)
	}
	return d.rest(limit)
}

// number reads a number of at most nine digits. Any other value is 0.
func (d *document) number() (int, error) {
	c, err := d.token()
	if err != nil {
		return 0, err
	}
	if c < '0' || c > '9' {
		return 0, d.skipAfter(c)
	}
	n := 0
	for digits := 0; c >= '0' && c <= '9'; digits++ {
		if n = n*10 + int(c-'0'); digits >= 9 {
			n = 0
		}
		if c, err = d.from.ReadByte(); err != nil {
			return 0, err
		}
	}
	if err := d.from.UnreadByte(); err != nil {
		return 0, err
	}
	return n, d.literal()
}

// skip reads a value and drops it.
func (d *document) skip() error {
	c, err := d.token()
	if err != nil {
		return err
	}
	return d.skipAfter(c)
}

// skipAfter is skip for a value whose first byte is c.
func (d *document) skipAfter(c byte) error {
	for depth := 0; ; {
		var err error
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			_, _, err = d.rest(0)
		case ',', ':':
			if depth == 0 {
				return errNoJSON
			}
		default:
			err = d.literal()
		}
		if err != nil || depth < 0 {
			return malformed(err)
		}
		if depth == 0 {
			return nil
		}
		if c, err = d.token(); err != nil {
			return err
		}
	}
}

// literal reads what is left of a number, true, false or null.
func (d *document) literal() error {
	for {
		c, err := d.from.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil // the value was all
		}
		if err != nil {
			return err
		}
		switch c {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return d.from.UnreadByte()
		case '{', '[', '"', ':':
			return errNoJSON
		}
	}
}

// rest reads a string whose opening quote has been read. Of one that is longer than
// limit it returns the beginning.
func (d *document) rest(limit int) (text string, whole bool, err error) {
	if limit == 0 {
		return "", false, d.skipString()
	}
	kept := append(make([]byte, 0, 64), '"')
	for len(kept) < 6*limit+2 { // an escape is six bytes for one at most
		c, err := d.from.ReadByte()
		if err != nil {
			return "", false, unexpected(err)
		}
		if c == '"' {
			return unescaped(kept, limit)
		}
		kept = append(kept, c)
		if c == '\\' {
			if c, err = d.from.ReadByte(); err != nil {
				return "", false, unexpected(err)
			}
			kept = append(kept, c)
		}
	}
	ended := d.skipString()
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
func (d *document) skipString() error {
	for {
		if _, err := d.from.Peek(1); err != nil {
			return unexpected(err)
		}
		buffered, _ := d.from.Peek(d.from.Buffered())
		i := bytes.IndexAny(buffered, "\"\\")
		if i < 0 {
			_, _ = d.from.Discard(len(buffered))
			continue
		}
		end := buffered[i] == '"'
		_, _ = d.from.Discard(i + 1)
		if end {
			return nil
		}
		if _, err := d.from.ReadByte(); err != nil { // what is escaped
			return unexpected(err)
		}
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

// token returns the next byte that is no white space.
func (d *document) token() (byte, error) {
	for {
		c, err := d.from.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c, nil
		}
	}
}

// another reports whether there is another document, after white space.
func (d *document) another() (bool, error) {
	if _, err := d.token(); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return false, err
	}
	return true, d.from.UnreadByte()
}

// unexpected is the end of the bytes in the middle of a document.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func malformed(err error) error {
	if err == nil {
		return errNoJSON
	}
	return err
}

// budget bounds what is read of the API, in bytes. Who reads more gets tooLarge.
type budget struct {
	from  io.Reader
	left  int64
	limit int64
}

// tooLarge says that the API sent more than is read.
type tooLarge struct{ limit int64 }

func (e tooLarge) Error() string { return fmt.Sprintf("it sent more than %d MiB", e.limit>>20) }

// Read implements io.Reader.
func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, tooLarge{b.limit}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	return n, err
}
