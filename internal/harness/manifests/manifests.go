// SPDX-License-Identifier: Apache-2.0

// Package manifests has what tests that read directories of manifests have in common.
package manifests

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
)

// Cluster is a Cluster that anybody may be.
const Cluster = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: dev}
spec: {authentication: {anonymous: true}}
`

// Webhook is the format of a configuration with one webhook, whose name it takes.
const Webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks:
- name: %s.example.com
  clientConfig: {service: {namespace: policies, name: policy, path: /judge}}
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 5
`

// ClusterNamed is a Cluster of this name, with certificates of that name.
func ClusterNamed(name string) string {
	return fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %[1]s}\nspec: {authentication: {certificate: {commonNames: [%[1]s]}}}\n", name)
}

// Put writes a file below dir.
func Put(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	Must(t, os.WriteFile(path, []byte(content), 0o600))
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var update = flag.Bool("update", false, "rewrite what the stories expect")

// Stories plays the stories in testdata. The first line of one names it, and its last
// sections hold what is expected of its other files: read returns each, empty ones
// perhaps.
func Stories(t *testing.T, sections []string, read func(t *testing.T, files []txtar.File) map[string]string) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no stories", err)
	}
	for _, path := range paths {
		story, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(string(story.Comment), "\n")
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			story.Files = slices.DeleteFunc(story.Files, func(f txtar.File) bool {
				expected := slices.Contains(sections, f.Name)
				if expected {
					want[f.Name] = string(f.Data)
				}
				return expected
			})
			got := read(t, story.Files)
			for _, section := range sections {
				if *update && got[section] != "" {
					story.Files = append(story.Files, txtar.File{Name: section, Data: []byte(got[section])})
				}
				if diff := cmp.Diff(want[section], got[section]); diff != "" && !*update {
					t.Errorf("%s (-want +got):\n%s", section, diff)
				}
			}
			if *update {
				Must(t, os.WriteFile(path, txtar.Format(story), 0o600))
			}
		})
	}
}
