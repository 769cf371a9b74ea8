// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// stock is a source of objects.
type stock struct {
	chain.ObjectSource
	name string
}

// listing is a cluster with an API, in which a plugin reads objects if it is on.
func listing(t *testing.T, on bool) *home {
	h := newHome(t)
	h.put("cluster.yaml", `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubeconfigFile: kubeconfig}
`)
	h.put("kubeconfig", `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api.example.com"}}]
users: [{name: a, user: {token: abc}}]
`)
	if on {
		h.put("plugin.yaml", "{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: a}, spec: {plugin: Listing}}\n---\n"+
			"{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: b}, spec: {plugin: Listing}}")
	}
	return &h
}

// O5 A cluster has one source of each resource that its Hooks ask for, however many they
// are, and as long as the configuration that is served asks for it.
func TestO5SourcesOfObjects(t *testing.T) {
	var asked []string
	compiler := compile.NewCompiler(compile.Options{Plugins: compiledIn(t), Objects: func(cluster string, a manifest.KubeAccess, resource schema.GroupVersionResource) chain.ObjectSource {
		name := fmt.Sprint(cluster, " ", a.Server, " ", resource.Group, "/", resource.Version, "/", resource.Resource)
		asked = append(asked, name)
		return &stock{name: name}
	}})
	var current *compile.Compiled
	for i, on := range []bool{true, true, false} {
		asked = nil
		next, problems, _ := compiler.Compile(listing(t, on).read(t), current, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		want := []string{"east https://api.example.com /v1/limitranges", "east https://api.example.com storage.k8s.io/v1/storageclasses"}
		if i == 2 {
			want = nil
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("compiled %d times (-want +got):\n%s", i+1, diff)
		}
		if len(next.Sources) != len(want) {
			t.Errorf("sources %v", next.Sources)
		}
		for _, resource := range []schema.GroupVersionResource{{Version: "v1", Resource: "limitranges"}, {Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}} {
			got := next.Clusters["east"].Objects(resource)
			if s, ok := got.(*stock); i < 2 && (!ok || !strings.HasSuffix(s.name, resource.Resource)) || i == 2 && got != nil {
				t.Errorf("compiled %d times: the source of %s is %v", i+1, resource.Resource, got)
			}
		}
		current = next
	}
}

// O6 Who contacts nobody has a source that says so.
func TestO6NobodyIsAsked(t *testing.T) {
	h := listing(t, true)
	east := h.good(compile.Options{Plugins: compiledIn(t)}).Clusters["east"]
	objects := east.Objects(schema.GroupVersionResource{Version: "v1", Resource: "limitranges"})
	if objects == nil {
		t.Fatal("there is no source")
	}
	if _, err := objects.Get("shop", "a", time.Time{}); err == nil || err.Error() != "the cluster was not asked" {
		t.Error(err)
	}
	if _, err := objects.List("shop", time.Time{}); err == nil || err.Error() != "the cluster was not asked" {
		t.Error(err)
	}
}

func (h *home) read(t *testing.T) manifest.Input {
	reader := manifest.Reader{Sources: manifest.Directories(h.dir)}
	return reader.Read(t.Context())
}
