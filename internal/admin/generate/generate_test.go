// SPDX-License-Identifier: Apache-2.0

// Package generate checks that what is generated of the status page is what the pinned
// templ makes of its templates.
package generate

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCurrent(t *testing.T) {
	out := t.TempDir()
	program := filepath.Join(out, "templ")
	run(t, ".", "go", "build", "-o", program, "github.com/a-h/templ/cmd/templ")
	pages := glob(t, "../*.templ")
	if kept := glob(t, "../*_templ.go"); len(pages) == 0 || len(kept) != len(pages) {
		t.Errorf("%d templates, and %d files that are generated: run make generate", len(pages), len(kept))
	}
	for _, page := range pages {
		source, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, filepath.Base(page)), source, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, out, program, "fmt", "-fail", ".")
	run(t, out, program, "generate")
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".templ") + "_templ.go"
		want, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("..", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("internal/admin/%s is not what its template gives: run make generate (%v)", name, err)
		}
	}
}

// The library is of the version that the code is generated for.
func TestOneVersion(t *testing.T) {
	const version = "{{.Version}}"
	generator := run(t, ".", "go", "list", "-m", "-f", version, "github.com/a-h/templ")
	if library := run(t, "../../..", "go", "list", "-m", "-f", version, "github.com/a-h/templ"); library != generator {
		t.Errorf("go.mod has templ %s, and internal/admin/generate/go.mod %s", library, generator)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// run returns what a command prints, without the newline.
func run(t *testing.T, directory, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = directory
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}
