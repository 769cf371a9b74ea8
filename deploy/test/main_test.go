// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// scratch holds what all tests use.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code) //nolint:forbidigo // it is main here
}

// built is the dispatcher as it is shipped, built once.
var built = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(scratch, "dispatcher")
	cmd := exec.Command("go", "build", "-C", "../..", "-trimpath", "-tags", "grpcnotrace", "-o", path, "./cmd/dispatcher")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// binary returns the path of the dispatcher.
func binary(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
