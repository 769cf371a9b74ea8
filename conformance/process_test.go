// SPDX-License-Identifier: Apache-2.0

// Package conformance holds the dispatcher against the API server's own webhook
// plugins, which are the caller and the oracle: each case is decided by a plugin
// that calls the webhooks directly, and by one that calls the shipped binary with
// the same webhooks in its registry.
package conformance

import (
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"

	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/admission-dispatcher/dispatcher/conformance/binary"
)

var binaryPath string // of the dispatcher, built once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dispatcher-conformance-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if binaryPath, err = binary.Build(context.Background(), dir); err != nil {
		panic(err)
	}
	// Every denial would be logged, and handling an error takes a millisecond. Some
	// published cases panic.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers, utilruntime.PanicHandlers = nil, nil
	m.Run()
}

// process is a dispatcher that serves a directory.
type process struct {
	address string
	pid     int
	pki     *pki.Authority
}

// serve starts the binary with the manifests in dir/registry and returns when it
// serves. It is ended, and waited for, at the end of the test.
func serve(t *testing.T, dir string) *process {
	t.Helper()
	authority, err := pki.NewAuthority("conformance authority")
	if err != nil {
		t.Fatal(err)
	}
	p, err := binary.Start(t.Context(), binary.Options{Path: binaryPath, Dir: dir, Clients: authority, LogLevel: "info"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &process{strings.TrimPrefix(p.URL, "https://"), p.ID(), authority}
}

// issue writes name.crt and name.key, for a server on loopback or a client of that name.
func issue(t *testing.T, by *pki.Authority, dir, name string) {
	t.Helper()
	pair, err := by.Issue(pki.OnLoopback(name))
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(dir, name); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
