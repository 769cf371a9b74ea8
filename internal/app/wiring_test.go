// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/config"
)

// wire is one field that an operator can set, and where its effect is observed:
// here, by a caller and a webhook of a running process, or by another test.
type wire struct {
	field string // its path, such as limits.requestBytes
	// value is a document in YAML that sets the field, and perhaps others that it
	// needs, to a value that is not its default.
	value string
	// observe fails the test unless the process does what the value says.
	observe func(t *testing.T, r *rig)
	// by is the other test, DIRECTORY.TestName, or the story, DIRECTORY/FILE.txtar.
	by string
	// alone keeps the row from running beside others: it sets environment variables.
	alone bool
}

// kind is one kind of object that an operator writes.
type kind struct {
	name  string
	spec  reflect.Type
	wires []wire
	// set makes value a part of the object of the rig.
	set func(r *rig, value string)
	// unset returns the object with the defaults, set with value.
	defaults, with func(t *testing.T, value string) reflect.Value
}

func kinds() []kind {
	return []kind{
		{"DispatcherConfiguration", reflect.TypeFor[config.Config](), processWires(), func(r *rig, value string) { r.configure(value) }, loadedDefault, loadedWith},
		{"Cluster", reflect.TypeFor[v1alpha1.ClusterSpec](), clusterWires(), func(r *rig, value string) { r.cluster("east", value) }, zero[v1alpha1.ClusterSpec], read[v1alpha1.ClusterSpec]},
		{"WebhookBinding", reflect.TypeFor[v1alpha1.WebhookBindingSpec](), bindingWires(), func(r *rig, value string) { r.bind(value) }, zero[v1alpha1.WebhookBindingSpec], read[v1alpha1.WebhookBindingSpec]},
		{"Plugin", reflect.TypeFor[v1alpha1.PluginSpec](), pluginWires(), func(r *rig, value string) { r.object("Plugin", "plug", value) }, zero[v1alpha1.PluginSpec], read[v1alpha1.PluginSpec]},
		{"RequestRule", reflect.TypeFor[exempt.Rule](), ruleWires(), func(r *rig, value string) { r.configure("failOpen: {rules: [" + value + "]}") }, zero[exempt.Rule], read[exempt.Rule]},
	}
}

// TestWiring walks every field of the process's configuration, of Cluster, of
// WebhookBinding and of Plugin. Each has one row, and each row one field.
func TestWiring(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			rows := map[string]wire{}
			for _, w := range k.wires {
				if _, twice := rows[w.field]; twice {
					t.Errorf("%s has two rows", w.field)
				}
				rows[w.field] = w
			}
			for _, field := range leaves("", k.spec) {
				w, ok := rows[field]
				if !ok {
					t.Errorf("%s has no row: add one that sets it and observes what the process does then, or that names the test which does", field)
					continue
				}
				delete(rows, field)
				t.Run(field, func(t *testing.T) { w.check(t, k) })
			}
			for field := range rows {
				t.Errorf("there is a row for %s, which is no field", field)
			}
		})
	}
}

// check observes the field, or finds the test that does.
func (w wire) check(t *testing.T, k kind) {
	if w.by != "" {
		exists(t, w.by, w.field[strings.LastIndex(w.field, ".")+1:])
		return
	}
	if !w.alone {
		t.Parallel()
	}
	set, unset := at(k.with(t, w.value), w.field), at(k.defaults(t, w.value), w.field)
	if !set.IsValid() || unset.IsValid() && reflect.DeepEqual(set.Interface(), unset.Interface()) {
		t.Fatalf("%s leaves the field at its default", w.value)
	}
	r := newRig(t)
	k.set(r, w.value)
	w.observe(t, r)
}

// leaves returns the paths of the fields below t that hold a value.
func leaves(prefix string, t reflect.Type) []string {
	var paths []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path, inner := prefix+name, f.Type
		if inner.Kind() == reflect.Slice && isSection(inner.Elem()) {
			path, inner = path+"[]", inner.Elem()
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if isSection(inner) {
			paths = append(paths, leaves(path+".", inner)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

// isSection reports whether t is a struct with fields of its own, and not a value.
func isSection(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[config.Duration](), reflect.TypeFor[v1alpha1.Duration](), reflect.TypeFor[metav1.LabelSelector](), reflect.TypeFor[exempt.Rule](),
		reflect.TypeFor[v1alpha1.SecretKey](), reflect.TypeFor[v1alpha1.SecretName](), reflect.TypeFor[v1alpha1.ConfigMapKey](),
		reflect.TypeFor[admissionregistrationv1.RuleWithOperations](), reflect.TypeFor[admissionregistrationv1.MatchCondition]():
		return false
	}
	return t.Kind() == reflect.Struct
}

// at returns the value at a path, of lists the last; invalid where there is none.
func at(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(name, "[]")
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() {
			return v
		}
		v = v.FieldByIndex(fieldNamed(v.Type(), name).Index)
		if list && v.Len() == 0 {
			return reflect.Value{}
		}
		if list {
			v = v.Index(v.Len() - 1)
		}
	}
	return v
}

func fieldNamed(t reflect.Type, name string) reflect.StructField {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f
		}
	}
	panic("no field " + name)
}

// loadedDefault returns what a configuration is that says no more than it must.
func loadedDefault(t *testing.T, _ string) reflect.Value {
	return loaded(t, "apiVersion: dispatcher.dev/v1alpha1\nkind: DispatcherConfiguration\n"+
		"tls: {certFile: a, keyFile: b, clientCAFile: c}\nsources: [{directory: d}]\n")
}

func loadedWith(t *testing.T, value string) reflect.Value {
	return loaded(t, merged(t, minimal, value))
}

func loaded(t *testing.T, text string) reflect.Value {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dispatcher.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, problems := config.Load(file)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return reflect.ValueOf(*cfg)
}

func zero[T any](*testing.T, string) reflect.Value { return reflect.ValueOf(*new(T)) }

func read[T any](t *testing.T, value string) reflect.Value {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict([]byte(value), &object); err != nil {
		t.Fatal(err)
	}
	return reflect.ValueOf(object)
}

// exists fails the test unless the other test is there, in a file that names the
// field.
func exists(t *testing.T, by, field string) {
	t.Helper()
	const root = "../../"
	if strings.HasSuffix(by, ".txtar") {
		story, err := os.ReadFile(root + by)
		if err != nil || !strings.Contains(string(story), strings.TrimSuffix(field, "[]")) {
			t.Errorf("the story is not there, or does not name %s: %v", field, err)
		}
		return
	}
	dir, name, _ := strings.Cut(by, ".")
	files, err := filepath.Glob(root + dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(file string) bool { return declares(t, file, name, field) }) {
		t.Errorf("no %s in %s, or it does not name %s", name, dir, field)
	}
}

// declares reports whether a file has the test and names the field.
func declares(t *testing.T, file, name, field string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), field) && slices.ContainsFunc(parsed.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == name
	})
}
