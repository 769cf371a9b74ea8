// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/metrics"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

// TestPage keeps docs/metrics.md as the code says.
func TestPage(t *testing.T) {
	const file = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(file, []byte(metrics.Page()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(metrics.Page(), string(text)); diff != "" {
		t.Errorf("docs/metrics.md is not current; go test ./internal/metrics -run Page -update (-want +got):\n%s", diff)
	}
}

// familyName is what reads like one in the documents; several end with a star.
var familyName = regexp.MustCompile("`(dispatcher_[a-z_]+)(\\*?)")

// Whatever family the documents send somebody to is one that is served.
func TestDocumentsNameFamilies(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range familyName.FindAllStringSubmatch(string(text), -1) {
			if !slices.ContainsFunc(metrics.Families(), func(f metrics.Family) bool {
				return f.Prometheus() == strings.TrimSuffix(name[1], "_bucket") || name[2] == "*" && strings.HasPrefix(f.Prometheus(), name[1])
			}) {
				t.Errorf("%s names %s, which nothing serves", filepath.Base(file), name[1])
			}
		}
	}
}
