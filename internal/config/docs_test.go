// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/match"
)

const page = "../../docs/configuration.md"

// TestDocumented compares the tables of docs/configuration.md with the fields of
// the structs, in order.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fields, rules, _ := strings.Cut(string(text), "\n## Rules\n")
	for _, table := range []struct {
		name, text string
		want       []string
	}{
		{"configuration", fields, fieldPaths("", reflect.TypeFor[config.Config]())},
		{"rules", rules, fieldPaths("", reflect.TypeFor[match.RequestRule]())},
	} {
		var documented []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table.text, -1) {
			documented = append(documented, row[1])
		}
		if diff := cmp.Diff(table.want, documented); diff != "" {
			t.Errorf("%s: fields (-) and documentation (+):\n%s", table.name, diff)
		}
	}
}

// fieldPaths returns the paths of all fields below t, as far as their types are
// declared in the configuration's package.
func fieldPaths(prefix string, t reflect.Type) []string {
	var paths []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := prefix + name
		paths = append(paths, path)
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner, path = inner.Elem(), path+"[]"
		}
		if inner.Kind() != reflect.Struct || inner.PkgPath() != reflect.TypeFor[config.Config]().PkgPath() {
			continue
		}
		paths = append(paths, fieldPaths(path+".", inner)...)
	}
	return paths
}

// TestExample loads the example of docs/configuration.md, and checks that it
// names every field.
func TestExample(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	cfg, problems := config.Load(write(t, example))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got, want := filepath.Base(cfg.Sources[0].Directory), "registry"; got != want {
		t.Errorf("source is %q, want %q", got, want)
	}
	for _, path := range fieldPaths("", reflect.TypeFor[config.Config]()) {
		name := strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]")
		if !strings.Contains(example, name+":") {
			t.Errorf("the example does not name %s", path)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dispatcher.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
