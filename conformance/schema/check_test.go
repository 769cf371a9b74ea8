// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/policy"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// documents are the OpenAPI documents that a release of Kubernetes publishes.
type documents map[schema.GroupVersionKind]*spec.Schema

// ResolveSchema implements resolver.SchemaResolver.
func (d documents) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if s, ok := d[kind]; ok {
		return s, nil
	}
	return nil, resolver.ErrSchemaNotFound
}

// released reads the documents in the source of the release of which ../kubernetes has the
// plugins.
func released(t *testing.T) documents {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	list.Dir, list.Stderr = "../kubernetes", os.Stderr
	directory, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(directory)), "api/openapi-spec/v3/api*__v*.json"))
	if len(files) < 20 {
		t.Fatalf("there are only %d documents", len(files))
	}
	all := documents{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var document spec3.OpenAPI
		if err == nil {
			err = json.Unmarshal(text, &document)
		}
		if err != nil {
			t.Fatal(err)
		}
		all.add(t, document.Components.Schemas)
	}
	return all
}

func (d documents) add(t *testing.T, schemas map[string]*spec.Schema) {
	t.Helper()
	const prefix = "#/components/schemas/"
	for name, s := range schemas {
		var kinds []schema.GroupVersionKind
		if err := s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds); err != nil {
			t.Fatal(err)
		}
		if len(kinds) != 1 { // those of all groups, such as DeleteOptions
			continue
		}
		whole, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
			s, ok := schemas[strings.TrimPrefix(ref, prefix)]
			return s, ok
		}, prefix+name)
		if err != nil {
			t.Fatal(err)
		}
		d[kinds[0]] = whole
	}
}

// checkers are the API server's and ours.
type checkers struct {
	theirs *validating.TypeChecker
	ours   *policy.Compiler
	types  *policyschema.Types
	kinds  []schema.GroupVersionKind // that both know
}

func newCheckers(t *testing.T) *checkers {
	t.Helper()
	all, definition := released(t), (&source{rand.New(rand.NewPCG(1, 1))}).definition()
	d := read(t, definition)
	all.add(t, d.published)
	c := &checkers{types: d.definition, ours: policy.NewCompiler(celenv.NewCompiler())}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range all {
		if _, ok := c.types.Shape(kind); ok {
			mapper.Add(kind, meta.RESTScopeRoot)
			c.kinds = append(c.kinds, kind)
		}
	}
	slices.SortFunc(c.kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	c.theirs = &validating.TypeChecker{SchemaResolver: all, RestMapper: mapper}
	return c
}

// onlyOurs reports whether a policy names a kind that the release does not serve, or not yet:
// in a version that client-go still has.
func (c *checkers) onlyOurs(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	for i := range p.Spec.MatchConstraints.ResourceRules {
		r := &p.Spec.MatchConstraints.ResourceRules[i]
		for _, group := range r.APIGroups {
			for _, version := range r.APIVersions {
				for _, resource := range r.Resources {
					kind, ok := c.types.Kind(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
					if ok && !slices.Contains(c.kinds, kind) {
						return true
					}
				}
			}
		}
	}
	return false
}

var numbered = regexp.MustCompile(`\b([A-Z][A-Za-z]+?)([0-9]{3,9}|Params)\b`)

// compare returns what they have found, after a comparison with what we have.
func (c *checkers) compare(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy) []string {
	t.Helper()
	want, got := []string{}, []string{}
	for _, w := range c.theirs.Check(p) {
		want = append(want, w.FieldRef+" "+numbered.ReplaceAllString(w.Warning, "$1"))
	}
	for _, w := range c.ours.Check(&p.Spec, c.types, field.NewPath("spec")) {
		got = append(got, w.At.String()+" "+numbered.ReplaceAllString(w.Text, "$1"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		text, _ := yaml.Marshal(p.Spec)
		t.Fatalf("(-theirs +ours):\n%s\n%s", diff, text)
	}
	return want
}

// H32 Random expressions, many of them with fields that are misspelt or of another type, are
// warned about in the API server's own words.
func TestChecks(t *testing.T) {
	c := newCheckers(t)
	if len(c.kinds) < 60 {
		t.Errorf("only %d kinds are compared", len(c.kinds))
	}
	came := map[string]int{}
	for i := range number(t, "CONFORMANCE_N", 2000) / 20 {
		g := &source{rand.New(rand.NewPCG(number(t, "CONFORMANCE_SEED", 1), i))}
		p := g.policy(c)
		if c.onlyOurs(p) {
			continue
		}
		warnings := c.compare(t, p)
		came[fmt.Sprint(min(len(warnings), 1), " or more")]++
		for _, w := range warnings {
			for _, what := range []string{"undefined field", "no matching overload", "undeclared reference", "unexpected type"} {
				if strings.Contains(w, what) {
					came[what]++
				}
			}
		}
	}
	t.Log(came)
	for _, what := range []string{"0 or more", "1 or more", "undefined field", "no matching overload"} {
		if came[what] == 0 {
			t.Errorf("no policy had %s", what)
		}
	}
}

// H32 The policies of examples/policies are warned about as by the API server.
func TestChecksOfExamples(t *testing.T) {
	c, checked := newCheckers(t), 0
	files, _ := filepath.Glob("../../examples/policies/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			if err := yaml.Unmarshal([]byte(document), &p); err != nil || p.Kind != "ValidatingAdmissionPolicy" {
				continue
			}
			checked++
			if found := c.compare(t, &p); len(found) > 0 {
				t.Logf("%s: %s", file, found)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d are checked", checked)
	}
}

// H32 The form of every field of every kind that both know is theirs.
func TestShapes(t *testing.T) {
	c, fields := newCheckers(t), 0
	for _, kind := range c.kinds {
		theirs, err := c.theirs.SchemaResolver.ResolveSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		ours, _ := c.types.Shape(kind)
		fields += sameShape(t, kind.Kind, theirs, ours)
	}
	if fields < 5000 {
		t.Errorf("only %d fields are compared", fields)
	}
}

// sameShape compares what they show of a schema with ours, and returns how many fields it
// has.
func sameShape(t *testing.T, path string, theirs *spec.Schema, ours *policyschema.Shape) (fields int) {
	t.Helper()
	typ := ""
	if len(theirs.Type) > 0 {
		typ = theirs.Type[0]
	}
	want := map[string]policyschema.Form{"string": policyschema.String, "integer": policyschema.Int, "boolean": policyschema.Bool, "number": policyschema.Double, "array": policyschema.List, "object": policyschema.Object}[typ]
	intOrString, _ := theirs.Extensions.GetBool("x-kubernetes-int-or-string")
	switch {
	case theirs.Format == "int-or-string" || intOrString:
		want = policyschema.Any
	case typ == "":
		if ours != nil {
			t.Errorf("%s is shown", path)
		}
		return 1
	case theirs.Format == "byte":
		want = policyschema.Bytes
	case theirs.Format == "date-time":
		want = policyschema.Timestamp
	case theirs.AdditionalProperties != nil && theirs.AdditionalProperties.Schema != nil:
		want = policyschema.Map
	}
	var element *spec.Schema
	switch want {
	case policyschema.Map:
		element = theirs.AdditionalProperties.Schema
	case policyschema.List:
		element = theirs.Items.Schema
	}
	if ours == nil {
		if element == nil || len(element.Type) > 0 {
			t.Errorf("%s is not shown", path)
		}
		return 1
	}
	if ours.Form != want {
		t.Errorf("%s is %d, want %d", path, ours.Form, want)
		return 1
	}
	if element != nil {
		return sameShape(t, path+"[]", element, ours.Element)
	}
	for name := range theirs.Properties {
		property := theirs.Properties[name]
		if name == "nodeAllocatableResourceMappings" { // which 1.37 has no more
			continue
		}
		fields += 1 + sameShape(t, path+"."+name, &property, ours.Fields[name])
	}
	return fields
}

// H32 The fields that hold bytes are those of the API's types.
func TestBytes(t *testing.T) {
	found := 0
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		if s, ok := policyschema.BuiltIn().Shape(kind); ok && kind.Version != "__internal" {
			found += bytesIn(t, kind.String(), of, s)
		}
	}
	if found < 10 {
		t.Errorf("only %d fields hold bytes", found)
	}
}

func bytesIn(t *testing.T, path string, of reflect.Type, s *policyschema.Shape) (found int) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	is := of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8
	switch {
	case s == nil:
	case is != (s.Form == policyschema.Bytes):
		t.Errorf("%s: bytes %t", path, is)
	case is:
		return 1
	case s.Form == policyschema.List || s.Form == policyschema.Map:
		return bytesIn(t, path+"[]", of.Elem(), s.Element)
	case s.Form == policyschema.Object && of.Kind() == reflect.Struct:
		for i := range of.NumField() {
			name, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			switch {
			case name == "" && strings.Contains(options, "inline"):
				found += bytesIn(t, path, of.Field(i).Type, s)
			case name != "" && s.Fields[name] != nil:
				found += bytesIn(t, path+"."+name, of.Field(i).Type, s.Fields[name])
			}
		}
	}
	return found
}
