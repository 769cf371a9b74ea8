// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// home is a directory of manifests of a test, and what reads it.
type home struct {
	*testing.T
	dir    string
	reader manifest.Reader
}

func newHome(t *testing.T) *home {
	h := &home{T: t, dir: t.TempDir()}
	h.from(h.dir)
	return h
}

// from makes these paths what is read.
func (h *home) from(paths ...string) { h.reader.Sources = manifest.Directories(paths...) }

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

func (h *home) put(name, content string) {
	h.Helper()
	manifests.Put(h, h.dir, name, content)
}

func (h *home) must(err error) {
	h.Helper()
	manifests.Must(h, err)
}

func (h *home) read() manifest.Input { return h.reader.Read(h.Context()) }

// good reads and wants no problem.
func (h *home) good() manifest.Input {
	h.Helper()
	in := h.read()
	if len(in.Problems) > 0 {
		h.Fatal(in.Problems)
	}
	return in
}

// refused reads and wants one problem, with the reason.
func (h *home) refused(reason string) {
	h.Helper()
	if in := h.read(); len(in.Problems) != 1 || !strings.Contains(in.Problems[0].Reason, reason) {
		h.Errorf("problems %v, want %q", in.Problems, reason)
	}
}
