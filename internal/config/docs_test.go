// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/config"
)

const page = "../../docs/configuration.md"

// TestDocumented compares the tables of docs/configuration.md with the fields of
// the structs, in order, and the defaults there with those that hold.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := load(t, minimal)
	fields, rules, _ := strings.Cut(string(text), "\n## Rules\n")
	var documented []string
	values := valuesOf("", reflect.ValueOf(*cfg))
	for _, cells := range rowsOf(fields) {
		if len(cells) != 4 {
			t.Fatalf("%q has %d cells, not field, unit, default and danger", cells, len(cells))
		}
		documented = append(documented, cells[0])
		if value, holds := values[cells[0]]; holds && !strings.HasPrefix(cells[2], "required") && !strings.HasPrefix(cells[2]+",", "`"+value+"`,") {
			t.Errorf("%s: the default is %s, not %s", cells[0], value, cells[2])
		}
	}
	if diff := cmp.Diff(fieldPaths("", reflect.TypeFor[config.Config]()), documented); diff != "" {
		t.Errorf("fields (-) and documentation (+):\n%s", diff)
	}
	documented = nil
	for _, cells := range rowsOf(rules) {
		documented = append(documented, cells[0])
	}
	if diff := cmp.Diff(fieldPaths("", reflect.TypeFor[exempt.Rule]()), documented); diff != "" {
		t.Errorf("fields of rules (-) and documentation (+):\n%s", diff)
	}
}

// rowsOf returns the cells of the tables' rows that begin with a field.
func rowsOf(text string) (rows [][]string) {
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|(.*)\\|$").FindAllStringSubmatch(text, -1) {
		cells := []string{row[1]}
		for _, cell := range strings.Split(row[2], "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}

// isSection reports whether t is a struct of the configuration, with fields of
// its own, and not a value.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[config.Config]().PkgPath() && t != reflect.TypeFor[config.Duration]()
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fieldPaths returns the paths of all fields below t.
func fieldPaths(prefix string, t reflect.Type) []string {
	var paths []string
	for f := range t.Fields() {
		path, inner := prefix+nameOf(f), f.Type
		paths = append(paths, path)
		if inner.Kind() == reflect.Slice {
			inner, path = inner.Elem(), path+"[]"
		}
		if isSection(inner) {
			paths = append(paths, fieldPaths(path+".", inner)...)
		}
	}
	return paths
}

// valuesOf returns the values below v that are not empty, by path. A bool is
// never empty.
func valuesOf(prefix string, v reflect.Value) map[string]string {
	values := map[string]string{}
	for f, value := range v.Fields() {
		path := prefix + nameOf(f)
		switch {
		case isSection(f.Type):
			maps.Copy(values, valuesOf(path+".", value))
		case f.Type.Kind() != reflect.Slice && (f.Type.Kind() == reflect.Bool || !value.IsZero()):
			values[path] = fmt.Sprint(value.Interface())
		}
	}
	return values
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
