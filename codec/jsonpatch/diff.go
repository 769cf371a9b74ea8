// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	codecjson "github.com/admission-dispatcher/dispatcher/codec/json"
)

// Diff appends to dst the operations, a JSON array, that make after of before, both decoded
// JSON objects: maps are gone into, and lists of one length, by index; everything else is
// replaced whole. They come in the order of the members, and the same ones each time; none
// is "[]". The error says that a value has no JSON.
func Diff(dst []byte, before, after map[string]any) ([]byte, error) {
	d := differ{out: append(dst, '[')}
	if err := d.maps(before, after); err != nil {
		return dst, err
	}
	if d.count > 0 {
		d.out = d.out[:len(d.out)-len(",")]
	}
	return append(d.out, ']'), nil
}

// differ writes operations, a comma behind each.
type differ struct {
	out   []byte
	path  []byte // where it is
	count int
}

func (d *differ) maps(before, after map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept {
			if err := d.within(key, d.remove); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		old, had := before[key]
		if err := d.within(key, func() error { return d.value("add", old, after[key], had) }); err != nil {
			return err
		}
	}
	return nil
}

// value writes how old becomes value, if it is another one. An existing null is nothing to
// replace, to kube-apiserver: a member is added in its place.
func (d *differ) value(op string, old, value any, had bool) error {
	switch value := value.(type) {
	case map[string]any:
		if old, ok := old.(map[string]any); ok {
			return d.maps(old, value)
		}
	case []any:
		if old, ok := old.([]any); ok && len(old) == len(value) {
			for i := range value {
				if err := d.within(strconv.Itoa(i), func() error { return d.value("replace", old[i], value[i], true) }); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		switch old.(type) {
		case map[string]any, []any: // not to be compared
		default:
			if had && old == value {
				return nil
			}
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	d.operation(op)
	d.out = append(append(d.out, `,"value":`...), text...)
	d.out = append(d.out, "},"...)
	return nil
}

func (d *differ) remove() error {
	d.operation("remove")
	d.out = append(d.out, "},"...)
	return nil
}

// within does what it is told below a member or an element.
func (d *differ) within(token string, do func() error) error {
	length := len(d.path)
	d.path = append(append(d.path, '/'), escaper.Replace(token)...)
	err := do()
	d.path = d.path[:length]
	return err
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func (d *differ) operation(op string) {
	d.count++
	d.out = append(append(d.out, `{"op":"`...), op...)
	d.out = append(d.out, `","path":`...)
	d.out = codecjson.AppendString(d.out, string(d.path))
}
