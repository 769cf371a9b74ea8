// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"bytes"
	"maps"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
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
	}, func(large []byte) error {
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
	}, func(large []byte) error {
		end := stringEnd(large, 0)
		var key string
		if err := utiljson.Unmarshal(large[:end], &key); err != nil {
			return err
		}
		v, err := c.value(large[end+bytes.IndexByte(large[end:], ':')+1:])
		members[key] = v
		return err
	})
	return members, err
}

// split calls few with what stands in the container raw, some of it at a time
// without the comma at its end, and large with each member or element that is a
// piece or more by itself.
func (c *converter) split(raw []byte, few, large func([]byte) error) error {
	inside := bytes.TrimSpace(raw[1 : len(raw)-1])
	begin, scanned := 0, 0 // of what few has not had; since the last look at the clock
	for start := 0; start < len(inside); {
		end := memberEnd(inside, start)
		if scanned += end - start; scanned > c.piece {
			scanned = 0
			if err := c.check(); err != nil {
				return err
			}
		}
		switch {
		case end-start > c.piece:
			if begin < start {
				if err := few(inside[begin : start-1]); err != nil {
					return err
				}
			}
			if err := large(bytes.TrimSpace(inside[start:end])); err != nil {
				return err
			}
			begin = end + 1
		case end-begin > c.piece || end == len(inside):
			if err := few(inside[begin:end]); err != nil {
				return err
			}
			begin = end + 1
		}
		start = end + 1
	}
	return nil
}

// enclose returns inside between two brackets, until the next call.
func (c *converter) enclose(open byte, inside []byte, closed byte) []byte {
	c.buffer = append(append(append(c.buffer[:0], open), inside...), closed)
	return c.buffer
}

// memberEnd returns where the comma is that ends the member or element at i, or
// len(b).
func memberEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// stringEnd returns the index behind the string at i.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
