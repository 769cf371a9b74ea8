// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

var update = flag.Bool("update", false, "rewrite what the stories expect")

// sections are what a story expects of its files, at its end.
var sections = []string{"objects", "accesses", "problems"}

// TestStories reads the files of each story. Its first line names it, its last
// sections hold what is expected.
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
		expected := slices.Contains(sections, f.Name)
		if expected {
			want[f.Name] = string(f.Data)
		}
		return expected
	})
	h := newHome(t)
	for _, f := range story.Files {
		h.put(f.Name, string(f.Data))
	}
	in := h.read()
	got := map[string]string{"objects": h.objects(&in), "accesses": h.accesses(&in)}
	for _, p := range in.Problems {
		got["problems"] += h.line(p.String())
	}
	for _, section := range sections {
		if *update && got[section] != "" {
			story.Files = append(story.Files, txtar.File{Name: section, Data: []byte(got[section])})
		}
		if diff := cmp.Diff(want[section], got[section]); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", section, diff)
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(story), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// line is a text without the home's path, as a line.
func (h *home) line(text string) string {
	return strings.ReplaceAll(text, h.dir+string(filepath.Separator), "") + "\n"
}

// objects lists what was decoded, in the order in which it takes part, but for what
// accesses lists.
func (h *home) objects(in *manifest.Input) string {
	in.Objects.Sort()
	var all []manifest.Origin
	for _, c := range in.Objects.Configurations {
		all = append(all, c.Origin)
	}
	for _, c := range in.Objects.Clusters {
		if c.Spec.KubeconfigFile == "" {
			all = append(all, c.Origin)
		}
	}
	for _, b := range in.Objects.Bindings {
		all = append(all, b.Origin)
	}
	var lines strings.Builder
	for _, at := range all {
		lines.WriteString(h.line(at.File + ": " + at.Object))
	}
	return lines.String()
}

// accesses lists what came of the Clusters' kubeconfigs.
func (h *home) accesses(in *manifest.Input) string {
	var lines strings.Builder
	for i := range in.Objects.Clusters {
		m := &in.Objects.Clusters[i]
		if m.Spec.KubeconfigFile == "" {
			continue
		}
		access, err := in.Access(m)
		text := fmt.Sprintf("server %s, name %q, authorities %q, credential in %q", access.Server, access.ServerName, access.CA,
			[]string{access.Credential.Kubeconfig, access.Credential.TokenFile, access.Credential.CertificateFile, access.Credential.KeyFile})
		if err != nil {
			text = err.Error()
		}
		lines.WriteString(h.line(m.Name + ": " + text))
	}
	return lines.String()
}
