// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "testing"

// FuzzApply holds Decode and Apply against json-patch.v4.
func FuzzApply(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.doc), []byte(c.patch))
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		if len(doc) > 4<<10 || len(patch) > 4<<10 {
			t.Skip("v4 is slow")
		}
		compare(t, doc, patch)
	})
}

// FuzzConcat checks that the array of both has the operations of both.
func FuzzConcat(f *testing.F) {
	f.Add([]byte(`[{"op":"remove","path":"/a"}]`), []byte("[ {\"op\":\"x\"} , {} ]\n"))
	f.Add([]byte(`[ ]`), []byte(`null`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		first, err := Decode(a, Limits{})
		if err != nil {
			return
		}
		second, err := Decode(b, Limits{})
		if err != nil {
			return
		}
		both, err := Decode(Concat(Concat(nil, a), b), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if both.Len() != first.Len()+second.Len() {
			t.Fatalf("%d operations, want %d and %d", both.Len(), first.Len(), second.Len())
		}
	})
}
