// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// prebuilt names the environment variable with the path of a binary to test
// instead of one that is built from the module around this one.
const prebuilt = "DISPATCHER"

// Build builds the dispatcher into dir and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv(prebuilt); path != "" {
		return filepath.Abs(path)
	}
	path := filepath.Join(dir, "dispatcher")
	build := exec.CommandContext(ctx, "go", "build", "-C", "..", "-trimpath", "-o", path, "./cmd/dispatcher")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", build.Args, err, out)
	}
	return path, nil
}
