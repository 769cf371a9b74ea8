// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Whoever asks to is told of each change once: what is served from then on, or
// why it is not.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	var told []string
	var r *Registry
	r = New(Settings{Sources: manifest.Directories(dir), Changed: func(c Change) {
		switch {
		case c.Snapshot == nil:
			told = append(told, "refused: "+c.Problems[0].Reason)
		case c.Snapshot != r.Snapshot():
			t.Error("another Snapshot is served")
		default:
			told = append(told, "served")
		}
	}})
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.Load()
		r.Load()
	}
	const cluster = "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\nspec: {authentication: {certificate: {commonNames: [east]}}}\n"
	write("a.yaml", cluster)
	write("b.yaml", "kind: Nonsense\n")
	write("b.yaml", "")
	write("a.yaml", cluster+"# with a comment\n")
	write("a.yaml", "kind: Nonsense\n")
	write("a.yaml", cluster+"# with a comment\n") // back to what is served
	const refused = "refused: apiVersion and kind are required"
	want := []string{"served", refused, "served", "served", refused, "served"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
