// SPDX-License-Identifier: Apache-2.0

// Package deploy tests the chart and what is made of it: rendered by Helm's own
// engine, decoded strictly, compared with golden files and with deploy/kustomize.
package deploy

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files and deploy/kustomize/base")

const chartDir = "../chart/admission-dispatcher"

// release is what Helm would be told.
var release = common.ReleaseOptions{Name: "admission-dispatcher", Namespace: "admission-dispatcher", Revision: 1, IsInstall: true}

// render returns what the chart makes of values, by the name of the template.
func render(values map[string]any, as common.ReleaseOptions) (map[string]string, error) {
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, values, as, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	made, err := engine.Engine{Strict: true}.RenderWithContext(context.Background(), chart, all)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for name, text := range made {
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(path.Base(name), "_") {
			found[path.Base(name)] = text
		}
	}
	return found, nil
}

func mustRender(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	made, err := render(values, release)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// strict decodes objects of Kubernetes, CustomResourceDefinitions, and objects of the two
// operators whose kinds the chart can make. A field that a kind does not have is an error.
var strict = func() runtime.Decoder {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetes.AddToScheme, apiextensions.AddToScheme, certmanager.AddToScheme, monitoring.AddToScheme} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
}()

// object returns the only object of a rendered template.
func object[T runtime.Object](t *testing.T, made map[string]string, template string) T {
	t.Helper()
	o, _, err := strict.Decode([]byte(made[template]), nil, nil)
	if err != nil {
		t.Fatalf("%s: %v\n%s", template, err, made[template])
	}
	typed, ok := o.(T)
	if !ok {
		t.Fatalf("%s is a %T", template, o)
	}
	return typed
}

// valueFiles are the ways in which people install, by name.
func valueFiles(t *testing.T) map[string]map[string]any {
	t.Helper()
	paths, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var values map[string]any
		if err := yaml.UnmarshalStrict(text, &values); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		all[strings.TrimSuffix(filepath.Base(p), ".yaml")] = values
	}
	return all
}

// TestGolden renders each of the value files: every object is one that its kind's
// decoder takes, and all of them are what the golden file has.
func TestGolden(t *testing.T) {
	all := valueFiles(t)
	if len(all) < 10 {
		t.Errorf("%d value files", len(all))
	}
	for name, values := range all {
		t.Run(name, func(t *testing.T) {
			made := mustRender(t, values)
			compare(t, filepath.Join("testdata/golden", name+".notes.txt"), strings.TrimSpace(made["NOTES.txt"])+"\n")
			delete(made, "NOTES.txt")
			var joined strings.Builder
			for _, template := range slices.Sorted(maps.Keys(made)) {
				o, _, err := strict.Decode([]byte(made[template]), nil, nil)
				if err != nil {
					t.Errorf("%s: %v", template, err)
				}
				if _, definition := o.(*apiextensions.CustomResourceDefinition); definition {
					// Golden files would be copies of copies.
					checkDefinition(t, template, made[template])
					continue
				}
				fmt.Fprintf(&joined, "--- # %s\n%s\n", template, strings.TrimSpace(made[template]))
				if n := bytes.Count([]byte(made[template]), []byte("\nkind: ")); n != 1 {
					t.Errorf("%s has %d objects", template, n)
				}
			}
			compare(t, filepath.Join("testdata/golden", name+".yaml"), joined.String())
		})
	}
}

// definitionsDir is where the CustomResourceDefinitions are made.
const definitionsDir = "../../api/v1alpha1/crds"

// checkDefinition compares a rendered CustomResourceDefinition with the one that is made
// of the types.
func checkDefinition(t *testing.T, template, rendered string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(definitionsDir, template))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(strings.TrimPrefix(string(want), "---\n")), strings.TrimSpace(rendered)); diff != "" {
		t.Errorf("%s is not that of api/v1alpha1 (make generate):\n%s", template, diff)
	}
}

// compare compares a file with what it should have; with -update it is rewritten.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", file, diff)
	}
}

// TestValuesSaySo: values.yaml has every setting that the schema knows, and a reason or
// a default for each; nothing that the templates read is missing there.
func TestValuesSaySo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	schemaText, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema property
	if err := yaml.Unmarshal(schemaText, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // Helm's own
	delete(schema.Properties, "configuration")
	checkSaid(t, "", schema, values)
}

type property struct {
	Properties map[string]property `json:"properties"`
}

func checkSaid(t *testing.T, at string, p property, value any) {
	if len(p.Properties) == 0 {
		return
	}
	said, _ := value.(map[string]any)
	for name, inner := range p.Properties {
		v, ok := said[name]
		if !ok {
			t.Errorf("values.yaml does not have %s%s", at, name)
			continue
		}
		checkSaid(t, at+name+".", inner, v)
	}
}
