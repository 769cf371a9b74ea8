// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// usualPiece is about how many bytes of an object are converted between two looks
// at the clock: some 100 us of it.
const usualPiece = 32 << 10

// maxShared is the largest object whose strings share its text: what outlives the
// admission is copied, and what is overlooked keeps no more than this.
const maxShared = 64 << 10

// converter makes values of CEL of JSON, with whole numbers as ints as in apimachinery's
// unstructured objects, in one pass that ends at the deadline: an object of some
// megabytes takes a good part of a second. They are those of a built-in kind.
type converter struct {
	*workspace

	deadline time.Time // zero: none
	piece    int
	looked   int // where the clock was looked at
	shares   bool
	of       *Variables // whose object it is, of which containers wait until they are asked for; nil: they do not
	depth    int        // of what is converted in the object
}

// workspace is what a conversion needs until its end. It weighs 16 KiB and more.
type workspace struct {
	scanner json.Scanner[string]
	// What the containers under way have so far, each behind those around it. There is
	// nothing behind that.
	members  []member
	elements []ref.Val
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// usualRoom is for how many members and elements a workspace keeps the room.
const usualRoom = 256

func (w *workspace) putBack() {
	w.scanner.Reset("")
	w.members, w.elements = emptied(w.members), emptied(w.elements)
	workspaces.Put(w)
}

func emptied[E any](s []E) []E {
	if cap(s) > usualRoom {
		return nil
	}
	clear(s)
	return s[:0]
}

// take returns a copy of what a container has, behind begin, and what is left without it.
func take[E any](s []E, begin int) (own, rest []E) {
	if len(s) > begin { // a copy of nothing would keep the room of s
		own = slices.Clone(s[begin:])
		clear(s[begin:])
	}
	return own, s[:begin]
}

// value decodes raw, which is valid JSON.
func (c *converter) value(raw []byte) (ref.Val, error) {
	text := string(raw)
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // U+FFFD for each byte, as encoding/json
	}
	c.shares = len(text) <= maxShared
	return c.text(text)
}

// text decodes a text, which is valid JSON.
func (c *converter) text(text string) (ref.Val, error) {
	c.workspace = workspaces.Get().(*workspace) //nolint:forcetypeassert // nothing else is in it
	defer c.putBack()
	if err := c.check(); err != nil {
		return nil, err
	}
	c.scanner.Reset(text)
	c.scanner.Lenient, c.looked = true, 0
	v, err := c.next()
	if err == nil && !c.scanner.End() {
		err = errors.New(c.scanner.SyntaxError())
	}
	return v, err
}

// check fails once the deadline has come.
func (c *converter) check() error {
	if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		return ErrInterrupted
	}
	c.looked = c.scanner.Pos
	return nil
}

// checkNow checks where a piece has been converted since.
func (c *converter) checkNow() error {
	if c.scanner.Pos-c.looked <= c.piece {
		return nil
	}
	return c.check()
}

// next decodes the value at the scanner's position.
func (c *converter) next() (ref.Val, error) {
	if err := c.checkNow(); err != nil {
		return nil, err
	}
	switch s := &c.scanner; s.Next() {
	case '{':
		return c.object()
	case '[':
		return c.array()
	case '"':
		raw, escaped, ok := s.Quoted()
		if !ok {
			return nil, errors.New(s.SyntaxError())
		}
		return types.String(c.said(raw, escaped)), nil
	}
	return c.scalar()
}

func (c *converter) object() (ref.Val, error) {
	s, begin := &c.scanner, len(c.members)
	s.Enter()
	for first := true; s.More(first, '}'); first = false {
		key, escaped, ok := s.Key()
		if !ok {
			break
		}
		if raw := c.waiting(); raw != "" {
			if err := c.checkNow(); err != nil {
				return nil, err
			}
			c.members = append(c.members, member{key: c.said(key, escaped), raw: raw})
			continue
		}
		v, err := c.next()
		if err != nil {
			return nil, err
		}
		c.members = append(c.members, member{key: c.said(key, escaped), value: v})
	}
	if s.Fault != "" {
		return nil, errors.New(s.SyntaxError())
	}
	members, rest := take(c.members, begin)
	c.members = rest
	m := newTypedMap(members)
	m.of, m.depth, m.shares = c.of, c.depth, c.shares
	return m, nil
}

// What waits is at most so deep in the object, so that nothing is skipped more often
// than that before it is converted, and of so many bytes at least.
const (
	deepest  = 6
	smallest = 64
)

// waiting skips the container at the scanner's position, if it is one that waits, and
// returns its text; "": it does not.
func (c *converter) waiting() string {
	s := &c.scanner
	if c.of == nil || c.depth >= deepest {
		return ""
	}
	if next := s.Next(); next != '{' && next != '[' {
		return ""
	}
	begin, depth := s.Pos, s.Depth
	if !s.Skip() {
		return ""
	}
	if s.Pos-begin < smallest {
		s.Pos, s.Depth = begin, depth
		return ""
	}
	return s.Data[begin:s.Pos]
}

func (c *converter) array() (ref.Val, error) {
	s, begin := &c.scanner, len(c.elements)
	s.Enter()
	for first := true; s.More(first, ']'); first = false {
		v, err := c.next()
		if err != nil {
			return nil, err
		}
		c.elements = append(c.elements, v)
	}
	if s.Fault != "" {
		return nil, errors.New(s.SyntaxError())
	}
	elements, rest := take(c.elements, begin)
	c.elements = rest
	return newTypedList(elements), nil
}

// said is what a string says.
func (c *converter) said(raw string, escaped bool) string {
	switch {
	case escaped:
		return string(json.AppendUnescaped(nil, raw))
	case c.shares:
		return raw
	}
	return strings.Clone(raw)
}

// scalar decodes a literal or a number: a whole one that fits is an int.
func (c *converter) scalar() (ref.Val, error) {
	s := &c.scanner
	begin := s.Pos
	if !s.Skip() {
		return nil, errors.New(s.SyntaxError())
	}
	switch text := s.Data[begin:s.Pos]; text {
	case "null":
		return types.NullValue, nil
	case "true", "false":
		return types.Bool(text == "true"), nil
	default:
		if !strings.ContainsAny(text, ".eE") {
			if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
				return types.Int(whole), nil
			}
		}
		f, err := strconv.ParseFloat(text, 64)
		return types.Double(f), err
	}
}
