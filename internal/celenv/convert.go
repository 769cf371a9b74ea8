// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"bytes"
	"errors"
	"maps"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// usualPiece is about how many bytes of an object are converted between two looks
// at the clock: some 100 us of it.
const usualPiece = 32 << 10

// converter decodes JSON the way apimachinery's unstructured objects are, whole
// numbers as int64, piece by piece, so that it ends at the deadline: an object of
// some megabytes takes a good part of a second.
type converter struct {
	deadline time.Time // zero: none
	piece    int
	buffer   []byte
	scanner  *json.Scanner[[]byte] // made when it is needed
}

// value decodes raw, which is valid JSON.
func (c *converter) value(raw []byte) (v any, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) > c.piece {
		switch raw[0] {
		case '[':
			return c.array(raw)
		case '{':
			return c.object(raw)
		}
	}
	return v, utiljson.Unmarshal(raw, &v)
}

// check fails once the deadline has come.
func (c *converter) check() error {
	if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		return ErrInterrupted
	}
	return nil
}

func (c *converter) array(raw []byte) (any, error) {
	list := []any{}
	err := c.split(raw, func(few []byte) error {
		var part []any
		err := utiljson.Unmarshal(c.enclose('[', few, ']'), &part)
		list = append(list, part...)
		return err
	}, func(_, large []byte) error {
		v, err := c.value(large)
		list = append(list, v)
		return err
	})
	return list, err
}

func (c *converter) object(raw []byte) (any, error) {
	members := map[string]any{}
	err := c.split(raw, func(few []byte) error {
		part := map[string]any{}
		err := utiljson.Unmarshal(c.enclose('{', few, '}'), &part)
		maps.Copy(members, part)
		return err
	}, func(key, large []byte) error {
		v, err := c.value(large)
		members[string(json.AppendUnescaped(nil, key))] = v
		return err
	})
	return members, err
}

// split calls few with what stands in the container raw, some of it at a time
// without the comma at its end, and large with each member or element that is a
// piece or more by itself: its key, if it has one, and its value.
func (c *converter) split(raw []byte, few func([]byte) error, large func(key, value []byte) error) error {
	if c.scanner == nil {
		c.scanner = new(json.Scanner[[]byte])
	}
	s, closer := c.scanner, raw[0]+2 // '}' and ']'
	at := func(pos, depth int) {
		s.Reset(raw)
		s.Pos, s.Depth, s.Lenient = pos, depth, true
	}
	at(0, 0)
	begin, end, scanned := 0, 0, 0 // of what few has not had; since the last look at the clock
	flush := func() error {
		part := raw[begin:end]
		if begin = end; len(part) == 0 {
			return nil
		}
		return few(part)
	}
	s.Enter()
	for first := true; s.More(first, closer); first = false {
		var key []byte
		start := s.Pos
		if closer == '}' {
			key, _, _ = s.Key()
		}
		value := s.Pos
		if s.Fault != "" || !s.Skip() {
			break
		}
		if scanned += s.Pos - start; scanned > c.piece {
			scanned = 0
			if err := c.check(); err != nil {
				return err
			}
		}
		if s.Pos-start > c.piece {
			if err := flush(); err != nil {
				return err
			}
			pos := s.Pos
			if err := large(key, raw[value:pos]); err != nil {
				return err
			}
			at(pos, 1) // large has used the scanner
			continue
		}
		if begin == end {
			begin = start
		}
		if end = s.Pos; end-begin > c.piece {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if s.Fault != "" {
		return errors.New(s.SyntaxError())
	}
	return flush()
}

// enclose returns inside between two brackets, until the next call.
func (c *converter) enclose(open byte, inside []byte, closed byte) []byte {
	c.buffer = append(append(append(c.buffer[:0], open), inside...), closed)
	return c.buffer
}
