// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
)

// TestDocumented compares the tables of docs/registry-objects.md with the
// fields of the kinds, in order.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/registry-objects.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, spec := range map[string]reflect.Type{
		"Cluster":              reflect.TypeFor[v1alpha1.ClusterSpec](),
		"WebhookBinding":       reflect.TypeFor[v1alpha1.WebhookBindingSpec](),
		"WebhookConfiguration": reflect.TypeFor[v1alpha1.WebhookConfigurationSpec](),
		"Plugin":               reflect.TypeFor[v1alpha1.PluginSpec](),
	} {
		_, section, _ := strings.Cut(string(page), "\n## "+kind+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var documented []string
		for _, row := range regexp.MustCompile("(?m)^\\| `(spec[^`]*)` \\|(.*)$").FindAllStringSubmatch(section, -1) {
			documented = append(documented, row[1])
			if cells := strings.Split(row[2], " | "); len(cells) != 3 {
				t.Errorf("%s: %s has %d cells, not unit, default and danger", kind, row[1], len(cells))
			}
		}
		if diff := cmp.Diff(fieldPaths("spec", spec), documented); diff != "" {
			t.Errorf("%s: fields (-) and documentation (+):\n%s", kind, diff)
		}
	}
}

// fieldPaths returns the paths of all fields below t, as far as their types are
// declared in package v1alpha1 and are no values to who writes one.
func fieldPaths(prefix string, t reflect.Type) []string {
	var paths []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := prefix + "." + name
		paths = append(paths, path)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice {
			inner, path = inner.Elem(), path+"[]"
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == reflect.TypeFor[v1alpha1.ClusterSpec]().PkgPath() && !isValue(inner) {
			paths = append(paths, fieldPaths(path, inner)...)
		}
	}
	return paths
}

func isValue(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[v1alpha1.Duration](), reflect.TypeFor[v1alpha1.RequestRule](),
		reflect.TypeFor[v1alpha1.SecretKey](), reflect.TypeFor[v1alpha1.SecretName](), reflect.TypeFor[v1alpha1.ConfigMapKey]():
		return true
	}
	return false
}
