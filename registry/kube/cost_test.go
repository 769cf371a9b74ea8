// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// namespacesVariable makes the test binary an API with that many namespaces, so
// that what it costs to serve one is not counted.
const namespacesVariable = "KUBE_TEST_NAMESPACES"

// serveAlone says on its output how the API is reached, and ends with its input.
func serveAlone(namespaces string) {
	n, err := strconv.Atoi(namespaces)
	if err != nil {
		panic(err)
	}
	a := startAPI()
	defer a.stop()
	for i := range n {
		name := fmt.Sprintf("team-%04d-production", i)
		a.put(name, map[string]string{
			"kubernetes.io/metadata.name": name, "team": fmt.Sprint("team-", i), "environment": "production",
			"pod-security.kubernetes.io/enforce": "restricted",
		})
	}
	_ = json.NewEncoder(os.Stdout).Encode(a.access())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// apiAlone runs the API in a process of its own.
func apiAlone(t *testing.T, namespaces int) manifest.KubeAccess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", namespacesVariable, namespaces))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var access manifest.KubeAccess
	if err := json.NewDecoder(out).Decode(&access); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("of-the-dispatcher"), 0o600); err != nil {
		t.Fatal(err)
	}
	access.Credential = manifest.CredentialSource{TokenFile: filepath.Join(dir, "token"), Roots: dir}
	return access
}

// cost is what one cluster takes.
type cost struct{ goroutines, bytes float64 }

// costOf watches the API as many clusters.
func costOf(t *testing.T, namespaces int) cost {
	const clusters = 20
	access := apiAlone(t, namespaces)
	w := newWorld(t)
	before, goroutines := memory(), runtime.NumGoroutine()
	sources := make([]chain.NamespaceSource, clusters)
	for i := range sources {
		sources[i] = w.Namespaces(fmt.Sprint("cluster-", i), access, []string{"environment"})
	}
	w.want(sources...)
	eventually(t, "all watches", func() bool {
		status := w.Status()
		for _, s := range status {
			if s.Stale || s.Namespaces != namespaces {
				return false
			}
		}
		return len(status) == clusters
	})
	c := cost{
		goroutines: float64(runtime.NumGoroutine()-goroutines) / clusters,
		bytes:      float64(memory()-before) / clusters,
	}
	runtime.KeepAlive(sources)
	return c
}

// memory returns the bytes in use on heap and stacks.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestCost says what a cluster costs (docs/operations.md has the figures), and
// that nobody polls: the goroutines are those of a connection and its watch.
func TestCost(t *testing.T) {
	var none, thousand cost
	t.Run("no namespaces", func(t *testing.T) { none = costOf(t, 0) })
	t.Run("1000 namespaces", func(t *testing.T) { thousand = costOf(t, 1000) })
	t.Logf("a cluster: %.1f goroutines, %.0f kB; 1,000 namespaces: %.0f kB", none.goroutines, none.bytes/1e3, (thousand.bytes-none.bytes)/1e3)
	if none.goroutines > 7 || thousand.goroutines > 7 {
		t.Errorf("%.1f and %.1f goroutines for a cluster", none.goroutines, thousand.goroutines)
	}
	if none.bytes > 512e3 {
		t.Error("much more memory than documented")
	}
	// Each has four labels, of which selectors name one.
	if each := (thousand.bytes - none.bytes) / 1000; each > 200 {
		t.Errorf("%.0f bytes for a namespace", each)
	}
	if cell := 200 * thousand.bytes; cell > 50e6 {
		t.Errorf("%.0f MB for a cell of 200 clusters with 1,000 namespaces each", cell/1e6)
	}
}

var _ match.NamespaceLookup = (*kube.Source)(nil)
