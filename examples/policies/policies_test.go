// SPDX-License-Identifier: Apache-2.0

// Package policies_test plays the policies of this directory: each allows and denies what
// testdata/cases.yaml says. conformance/policy compares them with kube-apiserver.
package policies_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// testCase is one request, and what its denial says; "": it is allowed.
type testCase struct {
	Request   map[string]any `json:"request"`
	Object    map[string]any `json:"object"`
	OldObject map[string]any `json:"oldObject"`
	Denied    string         `json:"denied"`
}

func TestPolicies(t *testing.T) {
	data, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string][]testCase
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatcher.New(dispatcher.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Wait)
	for _, file := range files {
		name := strings.TrimSuffix(file, ".yaml")
		t.Run(name, func(t *testing.T) {
			cluster := load(t, file)
			came := map[bool]int{}
			for i := range cases[name] {
				c := &cases[name][i]
				r := decide(t, d, cluster, c)
				came[r.Allowed]++
				want := "ValidatingAdmissionPolicy '" + name + ".example.com' with binding '" + name + ".example.com' denied request: "
				if r.Allowed != (c.Denied == "") || !r.Allowed && !(strings.HasPrefix(r.Message, want) && strings.Contains(r.Message, c.Denied)) || len(r.Warnings) > 0 {
					t.Errorf("case %d: allowed %t: %s %q", i, r.Allowed, r.Message, r.Warnings)
				}
			}
			if came[true] == 0 || came[false] == 0 {
				t.Errorf("%v: it must be seen to allow and to deny", came)
			}
		})
		delete(cases, name)
	}
	if len(cases) > 0 {
		t.Errorf("no policies: %v", slices.Collect(maps.Keys(cases)))
	}
}

// load returns a cluster with the policy of a file.
func load(t *testing.T, file string) *chain.Cluster {
	t.Helper()
	in := (&manifest.Reader{Sources: manifest.Directories(file)}).Read(t.Context())
	cluster := manifest.Cluster{}
	cluster.Name, cluster.Spec.Authentication.Anonymous = "east", true
	in.Objects.Clusters = append(in.Objects.Clusters, cluster)
	compiled, problems, lint := compile.NewCompiler(compile.Options{}).Compile(in, nil, nil)
	if len(in.Problems)+len(problems)+len(lint) > 0 {
		t.Fatal(in.Problems, problems, lint)
	}
	return compiled.Clusters["east"]
}

func decide(t *testing.T, d *dispatcher.Dispatcher, cluster *chain.Cluster, c *testCase) codec.Response {
	t.Helper()
	kind := schema.GroupVersionKind{Version: "v1", Kind: c.Object["kind"].(string)}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if strings.HasSuffix(kind.Kind, "Options") {
		resource.Resource = "pods"
	}
	request := map[string]any{
		"uid": "1", "name": "web", "namespace": "shop", "operation": "CREATE", "userInfo": map[string]any{"username": "ann", "groups": []string{"dev"}},
		"kind":     map[string]string{"version": kind.Version, "kind": kind.Kind},
		"resource": map[string]string{"version": resource.Version, "resource": resource.Resource},
		"object":   named(c.Object), "oldObject": named(c.OldObject),
	}
	maps.Copy(request, c.Request)
	text, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	if err != nil {
		t.Fatal(err)
	}
	body := codec.NewBody(text, nil)
	defer body.Release()
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	var v dispatcher.Verdict
	d.Dispatch(t.Context(), dispatcher.Request{Review: r, Cluster: cluster, Phase: chain.Validating, Snapshot: "s", Deadline: time.Now().Add(time.Minute)}, &v)
	return v.Response
}

// named is the object as an API server sends it.
func named(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	whole := maps.Clone(object)
	metadata := map[string]any{"name": "web", "namespace": "shop"}
	if given, ok := object["metadata"].(map[string]any); ok {
		maps.Copy(metadata, given)
	}
	whole["apiVersion"], whole["metadata"] = "v1", metadata
	return whole
}
