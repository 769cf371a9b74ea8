// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// TestStories validates the files of each story.
func TestStories(t *testing.T) {
	manifests.Stories(t, []string{"problems", "warnings"}, func(t *testing.T, files []txtar.File) map[string]string {
		h := home{t, t.TempDir()}
		h.write(files)
		_, problems, warnings := h.compile(compile.Options{Plugins: compiledIn(t)})
		return map[string]string{"problems": lines(h.dir, problems), "warnings": lines(h.dir, warnings)}
	})
}

func lines(dir string, problems []manifest.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		line := strings.ReplaceAll(p.String(), dir+string(filepath.Separator), "")
		b.WriteString(strings.ReplaceAll(line, dir, "DIRECTORY") + "\n")
	}
	return b.String()
}
