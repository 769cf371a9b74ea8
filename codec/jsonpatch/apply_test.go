// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"runtime"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := applyOurs([]byte(c.doc), []byte(c.patch))
			switch {
			case c.want == "" && err == nil:
				t.Fatalf("accepted, with the result %s", got)
			case c.want != "" && err != nil:
				t.Fatal(err)
			case string(got) != c.want:
				t.Fatalf("got  %s\nwant %s", got, c.want)
			}
			compare(t, []byte(c.doc), []byte(c.patch))
		})
	}
}

// A Document takes next to no memory before something is changed, however large it is.
func TestOpenAllocatesNoCopy(t *testing.T) {
	doc := []byte(`{"list":[` + strings.Repeat("0,", 1<<20) + `0]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := Open(doc, Limits{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(len(doc)/10) || d.Footprint() > len(doc)/10 {
		t.Errorf("a document of %d bytes takes %d, and says %d", len(doc), taken, d.Footprint())
	}
}
