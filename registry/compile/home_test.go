// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const (
	clusterYAML = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: dev}
spec: {authentication: {anonymous: true}}
`
	webhookYAML = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks:
- name: %s.example.com
  clientConfig: {service: {namespace: policies, name: policy, path: /judge}}
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 5
`
)

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
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h home) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
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
