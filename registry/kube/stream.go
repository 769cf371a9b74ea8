// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bufio"
	"cmp"
	"errors"
	"io"
)

// document reads JSON from a cluster's API piece by piece and drops what nobody
// asked for while it reads: an object of any size takes a few kilobytes. Its caller
// bounds the bytes. It is lenient about what it drops: only brackets and strings
// count there.
type document struct{ tokens }

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

func newDocument(r io.Reader) *document {
	return &document{tokens{bufio.NewReaderSize(r, documentBuffer)}}
}

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
			return cmp.Or(err, errNoJSON)
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
			if err := d.UnreadByte(); err != nil {
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
		if c, err = d.ReadByte(); err != nil {
			return 0, err
		}
	}
	if err := d.UnreadByte(); err != nil {
		return 0, err
	}
	return n, d.literal(nil)
}

// skip reads a value and drops it.
func (d *document) skip() error { return d.copy(nil) }

// skipAfter is skip for a value whose first byte is c.
func (d *document) skipAfter(c byte) error { return d.copyAfter(c, nil) }

// copy reads a value and keeps it, without the white space around its tokens.
func (d *document) copy(into *kept) error {
	c, err := d.token()
	if err != nil {
		return err
	}
	return d.copyAfter(c, into)
}

// copyAfter is copy for a value whose first byte is c.
func (d *document) copyAfter(c byte, into *kept) error {
	for depth := 0; ; {
		var err error
		into.apart(c)
		into.add(c)
		switch c {
		case '{', '[':
			depth++
			into.count()
		case '}', ']':
			depth--
		case '"':
			into.count()
			err = d.skipString(into)
		case ',', ':':
			if depth == 0 {
				return errNoJSON
			}
		default:
			into.count()
			err = d.literal(into)
		}
		if err != nil || depth < 0 {
			return cmp.Or(err, errNoJSON)
		}
		if depth == 0 {
			return nil
		}
		if c, err = d.token(); err != nil {
			return err
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
	return true, d.UnreadByte()
}
