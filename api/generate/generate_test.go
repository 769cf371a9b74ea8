// SPDX-License-Identifier: Apache-2.0

// Package generate checks that what is generated of api/v1alpha1 is what the pinned
// controller-gen makes of it.
package generate

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestCurrent(t *testing.T) {
	out := t.TempDir()
	program := filepath.Join(out, "controller-gen")
	run(t, ".", "go", "build", "-o", program, "sigs.k8s.io/controller-tools/cmd/controller-gen")
	run(t, "../..", program, "object", "crd", "paths=./api/v1alpha1",
		"output:crd:dir="+filepath.Join(out, "crds"), "output:object:dir="+out)
	made, err := filepath.Glob(filepath.Join(out, "crds", "*.yaml"))
	if err != nil || len(made) == 0 {
		t.Fatal(made, err)
	}
	for _, file := range append(made, filepath.Join(out, "zz_generated.deepcopy.go")) {
		name, err := filepath.Rel(out, file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("../v1alpha1", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("api/v1alpha1/%s is not what the types give: run make generate (%v)", name, err)
		}
	}
	kept, err := filepath.Glob("../v1alpha1/crds/*.yaml")
	if err != nil || len(kept) != len(made) {
		t.Errorf("%d CustomResourceDefinitions are committed, the types give %d", len(kept), len(made))
	}
}

func run(t *testing.T, directory, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = directory
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}
