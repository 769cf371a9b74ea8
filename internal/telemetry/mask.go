// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
)

// masked stands where a value was.
const masked = "***"

// mask takes values out of objects.
type mask [][]string

// newMask compiles paths such as spec.containers.env.
func newMask(paths []string) mask {
	var m mask
	for _, path := range paths {
		m = append(m, strings.Split(path, "."))
	}
	return m
}

// secretPaths are where a Secret keeps what it is for. kubectl's annotation has
// the whole object once more.
func secretPaths() mask {
	return mask{{"data"}, {"stringData"}, {"metadata", "annotations"}}
}

// apply returns the object's JSON without what is masked, and without a Secret's
// data; nil where there is no object. What cannot be read is left out altogether.
func (m mask) apply(raw []byte, secret bool) json.RawMessage {
	if raw == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var object any
	if d.Decode(&object) != nil {
		return json.RawMessage(`"` + masked + `"`)
	}
	if secret || isSecret(object) {
		secretPaths().hide(object)
	}
	m.hide(object)
	out, err := json.Marshal(object)
	if err != nil {
		return json.RawMessage(`"` + masked + `"`)
	}
	return out
}

// isSecret goes by the object itself: it may be part of another resource's review.
func isSecret(object any) bool {
	fields, _ := object.(map[string]any)
	return fields["kind"] == "Secret"
}

func (m mask) hide(object any) {
	for _, path := range m {
		hide(object, path)
	}
}

// hide replaces what path leads to below v. A list is gone through.
func hide(v any, path []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			hide(item, path)
		}
	case map[string]any:
		for key, value := range v {
			switch {
			case path[0] != "*" && path[0] != key:
			case len(path) == 1:
				v[key] = masked
			default:
				hide(value, path[1:])
			}
		}
	}
}
