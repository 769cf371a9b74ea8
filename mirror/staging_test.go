// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// What is judged several times is decoded once, also when others were judged in between.
func TestJudgedAgainIsNotDecodedAgain(t *testing.T) {
	m := &Mirror{disk: disk{t.TempDir()}, compiler: compile.NewCompiler(compile.Options{})}
	var objects []*object
	for i := range 4 {
		name := fmt.Sprint("c", i)
		objects = append(objects, version(name, `{"apiVersion": "dispatcher.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "`+name+`"}}`, int64(i)))
	}
	s := newStage(m)
	decoded := map[string]*byte{} // where a name is that was decoded
	for _, judged := range [][]*object{objects, objects[:1], objects[2:], objects[:2], objects} {
		in := s.read(judged)
		if len(in.Objects.Clusters) != len(judged) {
			t.Fatalf("%d objects of %d were read: %v", len(in.Objects.Clusters), len(judged), in.Problems)
		}
		for _, c := range in.Objects.Clusters {
			at := unsafe.StringData(c.Name)
			if before := decoded[c.Name]; before != nil && before != at {
				t.Errorf("%s was decoded again", c.Name)
			}
			decoded[c.Name] = at
		}
	}
}
