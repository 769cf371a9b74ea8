// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

var update = flag.Bool("update", false, "rewrite what the stories expect")

// TestStories validates the files of each story. Its first line names it, its
// last sections hold what is expected.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no stories", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(string(archive.Comment), "\n")
		t.Run(name, func(t *testing.T) { tell(t, path, archive) })
	}
}

func tell(t *testing.T, path string, story *txtar.Archive) {
	want := map[string]string{}
	story.Files = slices.DeleteFunc(story.Files, func(f txtar.File) bool {
		expected := f.Name == "problems" || f.Name == "warnings"
		if expected {
			want[f.Name] = string(f.Data)
		}
		return expected
	})
	h := home{t, t.TempDir()}
	h.write(story.Files)
	_, problems, warnings := h.compile(compile.Options{})
	got := map[string]string{"problems": lines(h.dir, problems), "warnings": lines(h.dir, warnings)}
	if *update {
		rewrite(t, path, story, got)
		return
	}
	for section := range got {
		if diff := cmp.Diff(want[section], got[section]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", section, diff)
		}
	}
}

func (h home) write(files []txtar.File) {
	h.t.Helper()
	for _, f := range files {
		h.put(f.Name, string(f.Data))
	}
}

func lines(dir string, problems []manifest.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		line := strings.ReplaceAll(p.String(), dir+string(filepath.Separator), "")
		b.WriteString(strings.ReplaceAll(line, dir, "DIRECTORY") + "\n")
	}
	return b.String()
}

func rewrite(t *testing.T, path string, story *txtar.Archive, got map[string]string) {
	for _, section := range []string{"problems", "warnings"} {
		if got[section] != "" {
			story.Files = append(story.Files, txtar.File{Name: section, Data: []byte(got[section])})
		}
	}
	if err := os.WriteFile(path, txtar.Format(story), 0o600); err != nil {
		t.Fatal(err)
	}
}
