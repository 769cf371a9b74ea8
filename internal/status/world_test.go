// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/admission-dispatcher/dispatcher/examples/quickstart"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// world is a registry that reads the example manifests, and a Collector of it.
type world struct {
	t         *testing.T
	dir       string
	registry  *registry.Registry
	collector *status.Collector
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	names, err := fs.Glob(quickstart.Manifests, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w.write(name, w.example(name))
	}
	w.registry = registry.New(registry.Settings{
		Sources: manifest.Directories(w.dir),
		Changed: func(c registry.Change) { w.collector.Changed(c) },
	})
	w.collector = status.New(status.Config{Version: "test", Registry: w.registry, Unready: func() []string { return nil }})
	return w
}

func (w *world) example(name string) string {
	data, err := quickstart.Manifests.ReadFile(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load() status.Status {
	w.registry.Load()
	return w.collector.Status()
}
