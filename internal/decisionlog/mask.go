// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/admission-dispatcher/dispatcher/internal/objectpath"
)

// Masked stands where a value was that a DecisionLog leaves out.
const Masked = "***"

// mask takes values out of objects.
type mask []objectpath.Path

// newMask compiles paths such as spec.containers.env.
func newMask(paths []string) (mask, error) {
	var m mask
	for _, text := range paths {
		path, err := objectpath.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("mask %s: %w", text, err)
		}
		m = append(m, path)
	}
	return m, nil
}

// secretPaths are where a Secret keeps what it is for. kubectl's annotation has
// the whole object once more.
func secretPaths() mask {
	return mask{{{Name: "data"}}, {{Name: "stringData"}}, {{Name: "metadata"}, {Name: "annotations"}}}
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
		return json.RawMessage(`"` + Masked + `"`)
	}
	if secret || isSecret(object) {
		secretPaths().hide(object)
	}
	m.hide(object)
	out, err := json.Marshal(object)
	if err != nil {
		return json.RawMessage(`"` + Masked + `"`)
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
func hide(v any, path objectpath.Path) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			hide(item, path)
		}
	case map[string]any:
		for key, value := range v {
			switch {
			case !path[0].Is(key):
			case len(path) == 1:
				v[key] = Masked
			default:
				hide(value, path[1:])
			}
		}
	}
}
