// SPDX-License-Identifier: Apache-2.0

package importgraph

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	for path := range strings.Lines(run(t, "go", "list", "-deps", "./cmd/dispatcher")) {
		path = strings.TrimSpace(path)
		for prefix, why := range guarded() {
			if within(path, prefix) {
				t.Errorf("the binary contains %s: %s", path, why)
			}
		}
	}
}

// TestTrustRoots: the image holds the binary alone, so the binary has the authorities
// that webhooks without a caBundle are verified by.
func TestTrustRoots(t *testing.T) {
	const roots = "golang.org/x/crypto/x509roots/fallback"
	if !slices.Contains(strings.Fields(run(t, "go", "list", "-deps", "./cmd/dispatcher")), roots) {
		t.Errorf("the binary does not contain %s", roots)
	}
}

// TestBinarySize measures what the Makefile's build makes, stripped.
func TestBinarySize(t *testing.T) {
	if testing.Short() {
		t.Skip("linking takes a while")
	}
	binary := filepath.Join(t.TempDir(), "dispatcher")
	t.Setenv("CGO_ENABLED", "0")
	run(t, "go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", binary, "./cmd/dispatcher")
	file, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the stripped binary has %.1f MB", float64(file.Size())/1e6)
	if file.Size() >= maxBinary {
		t.Errorf("the stripped binary has %d bytes, and must stay under %d", file.Size(), maxBinary)
	}
}

// run returns what a command prints in the root of the module.
func run(t *testing.T, command string, args ...string) string {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Dir = root
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, &problems)
	}
	return string(out)
}
