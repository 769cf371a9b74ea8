// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzObject compares what is kept of an object with what encoding/json reads: it is
// the same, but for managedFields, or an error.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"name":"n","namespace":"s","managedFields":[1],"labels":{"a":"b"},"x":{"managedFields":1}},"spec":[1,2.5,{"a":null}]}`,
		`{"metadata":null}`, `null`, `[]`, `{"metadata":{"name":"n"},"spec":[1 2]}`, `{"a":"\ud800\"","\u0061":tru}`, ` { "metadata" : {"labels":null} , "kind":"K" } `,
		`{"metadata":{"name":"n"}}{"metadata":{"name":"m"}}`, `{"a":{"b":[[[]]]},"":1}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := (&objectReader{document: newDocument(bytes.NewReader(data))}).read()
		if err != nil || o.stored == nil {
			return
		}
		var got, want map[string]any
		if err := json.Unmarshal(o.stored.JSON, &got); err != nil {
			t.Fatalf("%s is kept: %v", o.stored.JSON, err)
		}
		if json.NewDecoder(bytes.NewReader(data)).Decode(&want) != nil {
			return // it is more lenient about what it drops
		}
		metadata, _ := want["metadata"].(map[string]any)
		delete(metadata, "managedFields")
		if name, _ := metadata["name"].(string); name != o.Name && !repeated(data) {
			t.Errorf("name %q, want %q", o.Name, name)
		}
		if want == nil || repeated(data) || odd(want) {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	})
}

// repeated reports whether an object may have a member twice: then what it says is
// merged in another way.
func repeated(data []byte) bool {
	for _, key := range []string{"metadata", "name", "namespace", "labels", "resourceVersion", "managedFields"} {
		if strings.Count(string(data), key) > 1 {
			return true
		}
	}
	return bytes.Contains(data, []byte("\\u")) // a member may be spelled in two ways
}

// odd reports whether what is a string in every object is something else: that is read
// as none.
func odd(object map[string]any) bool {
	for _, key := range []string{"kind", "apiVersion"} {
		if value, ok := object[key]; ok {
			if _, is := value.(string); !is {
				return true
			}
		}
	}
	value, there := object["metadata"]
	metadata, ok := value.(map[string]any)
	if !ok {
		return there
	}
	for _, key := range []string{"name", "namespace", "resourceVersion"} {
		if value, ok := metadata[key]; ok {
			if _, is := value.(string); !is {
				return true
			}
		}
	}
	labels, ok := metadata["labels"].(map[string]any)
	if value, there := metadata["labels"]; there && !ok {
		return value == nil || there
	}
	for _, value := range labels {
		if _, is := value.(string); !is {
			return true
		}
	}
	return false
}
