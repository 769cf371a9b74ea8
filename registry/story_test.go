// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp's pools look for what is idle at intervals that nothing outside
		// can shorten, and end when they find nothing.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

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
	dir := t.TempDir()
	write(t, dir, story.Files)
	_, problems, warnings := registry.Validate(registry.Settings{}, []string{dir})
	got := map[string]string{"problems": lines(dir, problems), "warnings": lines(dir, warnings)}
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

func write(t *testing.T, dir string, files []txtar.File) {
	t.Helper()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
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
