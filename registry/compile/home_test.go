// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const clusterYAML, webhookYAML = manifests.Cluster, manifests.Webhook

// home is a directory of manifests of a test.
type home struct {
	t   *testing.T
	dir string
}

// newHome returns one with a Cluster and a webhook.
func newHome(t *testing.T) home {
	h := home{t, t.TempDir()}
	h.put("cluster.yaml", clusterYAML)
	h.put("webhook.yaml", fmt.Sprintf(webhookYAML, "first.policy"))
	return h
}

func (h home) put(name, content string) {
	h.t.Helper()
	manifests.Put(h.t, h.dir, name, content)
}

func (h home) write(files []txtar.File) {
	h.t.Helper()
	for _, f := range files {
		h.put(f.Name, string(f.Data))
	}
}

func (h home) must(err error) {
	h.t.Helper()
	manifests.Must(h.t, err)
}

// compile compiles what is in the directory.
func (h home) compile(o compile.Options) (*compile.Compiled, []manifest.Problem, []manifest.Problem) {
	reader := manifest.Reader{Sources: manifest.Directories(h.dir)}
	return compile.NewCompiler(o).Compile(reader.Read(h.t.Context()), nil, nil)
}

// good compiles what is in the directory and wants no problem.
func (h home) good(o compile.Options) *compile.Compiled {
	h.t.Helper()
	compiled, problems, _ := h.compile(o)
	if len(problems) > 0 {
		h.t.Fatal(problems)
	}
	return compiled
}
