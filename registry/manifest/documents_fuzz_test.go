// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzDecode feeds files to the decoder: it neither panics nor accepts a file
// without either an object or a word about it, and reads the same file the same
// way twice.
func FuzzDecode(f *testing.F) {
	own, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	compiled, err := filepath.Glob("../compile/testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range slices.Concat(own, compiled) {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(filepath.Ext(file.Name) == ".json", file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, isJSON bool, data []byte) {
		name := "fuzz.yaml"
		if isJSON {
			name = "fuzz.json"
		}
		docs, errs := documents(name, data)
		d, again := decoder{strict: newStrict()}, decoder{strict: newStrict()}
		for _, once := range []*decoder{&d, &again} {
			once.file(File{Name: name, Data: data})
			once.leftOver()
		}
		if len(d.problems) < len(errs) {
			t.Fatalf("%v were not all reported", errs)
		}
		if d.objects.Len()+len(d.problems)+len(d.warnings) == 0 && len(docs) > 0 && !onlyEmptyLists(docs) {
			t.Fatalf("%d documents, neither objects nor problems nor a warning", len(docs))
		}
		if d.objects.Len() != again.objects.Len() || len(d.problems) != len(again.problems) || !slices.Equal(d.warnings, again.warnings) {
			t.Fatal("the same file was read in two ways")
		}
	})
}

func onlyEmptyLists(docs []json.RawMessage) bool {
	for _, doc := range docs {
		var list struct{ Items []any }
		if json.Unmarshal(doc, &list) != nil || len(list.Items) > 0 {
			return false
		}
	}
	return true
}
