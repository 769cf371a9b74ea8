// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzDocument reads documents as a cluster may send them: each comes to the same types each
// time, in however small pieces, of which there are no more than are counted, and merging by
// them ends.
func FuzzDocument(f *testing.F) {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	const kind = `"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"}]`
	for _, schemas := range []string{
		`"w":{"type":"object",` + kind + `,"properties":{"spec":{"allOf":[{"$ref":"#/components/schemas/s"}]}}},"s":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}}`,
		`"w":{"type":"object",` + kind + `,"properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string","default":"d"}}}}}}`,
		`"w":{` + kind + `,"$ref":"#/components/schemas/w"}`, `"w":{` + kind + `,"type":"object"},"v":{` + kind + `,"type":"string"}`,
		`"w":{"type":"object",` + kind + `,"x-kubernetes-map-type":"atomic","additionalProperties":{"x-kubernetes-int-or-string":true},"x-kubernetes-preserve-unknown-fields":true}`,
		`"w":{"type":"object",` + kind + `,"properties":{"a":{"x-kubernetes-patch-strategy":"merge","x-kubernetes-patch-merge-key":"k","items":{"properties":{"k":{}}}},"b":{"x-kubernetes-embedded-resource":true}}}`,
		`"w":{"type":["object"],` + kind + `,"properties":[],"additionalProperties":5}`, `"w":null`, `"w":` + strings.Repeat(`{"items":`, maxDepth+1), ``,
	} {
		f.Add([]byte(`{"openapi":"3.0.0","paths":{"/a":{"get":{"b":[{}]}}},"components":{"schemas":{` + schemas + `}}}`))
	}
	for _, whole := range []string{`{}`, `null`, `[]`, `{"components":null}`, `{"components":{"schemas":[]}}`, `{"components":{"schemas":{}},"components":{}}`} {
		f.Add([]byte(whole))
	}
	objects := []map[string]any{{"spec": map[string]any{"a": []any{"b"}}}, {"a": []any{map[string]any{"k": "b"}, map[string]any{}}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		types, size, err := ReadDocument(bytes.NewReader(data))
		again, sizeAgain, errAgain := ReadDocument(iotest.OneByteReader(bytes.NewReader(data)))
		if size != sizeAgain || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatalf("%d schemas and %v, then %d and %v", size, err, sizeAgain, errAgain)
		}
		if err != nil {
			if types != nil || size != 0 {
				t.Errorf("%v, with %d schemas", err, size)
			}
			return
		}
		if diff := cmp.Diff(types.names, again.names); diff != "" || !types.parser.Schema.Equals(&again.parser.Schema) {
			t.Errorf("not the same each time: %s", diff)
		}
		if size < 0 || size > maxNodes || len(types.parser.Schema.Types) > size+len(common()) {
			t.Errorf("%d types of %d schemas", len(types.parser.Schema.Types), size)
		}
		of, ok := types.Of(widget)
		for _, live := range objects {
			if !ok {
				break
			}
			merged, err := of.Merge(live, live)
			anew, errAnew := of.Merge(live, live)
			if (err == nil) != (errAnew == nil) || !cmp.Equal(merged, anew) {
				t.Errorf("merged %v, %v, then %v, %v", merged, err, anew, errAnew)
			}
		}
	})
}
