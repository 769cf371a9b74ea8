// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the chart's copies of the CustomResourceDefinitions")

const (
	definitions = "../v1alpha1/crds"
	copies      = "../../deploy/chart/admission-dispatcher/templates/crds"
)

// TestChart: the chart has each of the CustomResourceDefinitions as a template, for
// releases that have what several share. Helm does not upgrade what is in its own
// directory crds.
func TestChart(t *testing.T) {
	made, err := filepath.Glob(filepath.Join(definitions, "*.yaml"))
	if err != nil || len(made) == 0 {
		t.Fatal(made, err)
	}
	for _, file := range made {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("{{")) {
			t.Fatalf("%s would be a template of something else", file)
		}
		if !bytes.Contains(text, []byte("\n    helm.sh/resource-policy: keep\n")) {
			t.Errorf("%s would be deleted with a release, and all objects with it", file)
		}
		want := slices.Concat([]byte("{{- if include \"dispatcher.shared\" . }}\n"), bytes.TrimPrefix(text, []byte("---\n")), []byte("{{- end }}\n"))
		copied := filepath.Join(copies, filepath.Base(file))
		if *update {
			if err := os.MkdirAll(copies, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(copied, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not %s: run make generate (%v)", copied, file, err)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(copies, "*")); err != nil || len(kept) != len(made) {
		t.Errorf("the chart has %d CustomResourceDefinitions, there are %d", len(kept), len(made))
	}
}
