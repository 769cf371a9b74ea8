// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Configurations of either version and phase are decoded with what kube-apiserver
// would make of them.
func TestDecodedConfigurations(t *testing.T) {
	h := newHome(t)
	const text = `apiVersion: admissionregistration.k8s.io/%s
kind: %sWebhookConfiguration
metadata: {name: c}
webhooks: [{name: w.example.com}]
`
	type decoded struct {
		phase         chain.Phase
		beta          bool
		policy, match string
		timeout       int32
	}
	for _, tt := range []struct {
		version, kind string
		want          decoded
	}{
		{"v1", "Validating", decoded{chain.Validating, false, "Fail", "Equivalent", 10}},
		{"v1", "Mutating", decoded{chain.Mutating, false, "Fail", "Equivalent", 10}},
		{"v1beta1", "Validating", decoded{chain.Validating, true, "Ignore", "Exact", 30}},
		{"v1beta1", "Mutating", decoded{chain.Mutating, true, "Ignore", "Exact", 30}},
	} {
		h.put("a.yaml", fmt.Sprintf(text, tt.version, tt.kind))
		c := h.good().Objects.Configurations
		if len(c) != 1 || len(c[0].Webhooks) != 1 {
			t.Fatalf("%s %s: %v", tt.version, tt.kind, c)
		}
		w := c[0].Webhooks[0]
		got := decoded{c[0].Phase, c[0].Beta, string(*w.FailurePolicy), string(*w.MatchPolicy), *w.TimeoutSeconds}
		if got != tt.want || w.Name != "w.example.com" || c[0].Meta.Name != "c" {
			t.Errorf("%s %s: %+v, want %+v", tt.version, tt.kind, got, tt.want)
		}
		if (w.ReinvocationPolicy != nil) != (tt.want.phase == chain.Mutating) {
			t.Errorf("%s %s: reinvocation %v", tt.version, tt.kind, w.ReinvocationPolicy)
		}
	}
}

// drawn is objects whose names stand in no order, in files that do not matter.
func drawn() manifest.Objects {
	var o manifest.Objects
	for i, name := range []string{"m b", "v c", "m a", "v a", "v b"} {
		c := manifest.Configuration{Origin: manifest.Origin{File: fmt.Sprint(i), Object: "Configuration/" + name}, Phase: chain.Validating}
		if c.Meta.Name = name[2:]; name[0] == 'm' {
			c.Phase = chain.Mutating
		}
		o.Configurations = append(o.Configurations, c)
	}
	for i, name := range []string{"c", "a", "b"} {
		cluster := manifest.Cluster{Origin: manifest.Origin{File: fmt.Sprint(i), Object: "Cluster/" + name}}
		cluster.Name = name
		o.Clusters = append(o.Clusters, cluster)
	}
	for i, name := range []string{"b", "a"} {
		binding := manifest.Binding{Origin: manifest.Origin{File: fmt.Sprint(i), Object: "WebhookBinding/" + name}}
		binding.Name = name
		o.Bindings = append(o.Bindings, binding)
	}
	return o
}

// Objects take part in the order of their names, configurations phase by phase,
// whatever files they come from.
func TestSort(t *testing.T) {
	o := drawn()
	if o.Len() != 10 {
		t.Errorf("%d objects", o.Len())
	}
	o.Sort()
	var got []string
	for _, c := range o.Configurations {
		got = append(got, c.Object)
	}
	for _, c := range o.Clusters {
		got = append(got, c.Object)
	}
	for _, b := range o.Bindings {
		got = append(got, b.Object)
	}
	want := []string{
		"Configuration/v a", "Configuration/v b", "Configuration/v c", "Configuration/m a", "Configuration/m b",
		"Cluster/a", "Cluster/b", "Cluster/c", "WebhookBinding/a", "WebhookBinding/b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each object that stands there again is a problem (E7), which names the first place.
func TestE7Duplicates(t *testing.T) {
	o := drawn()
	if found := o.Duplicates(); len(found) > 0 {
		t.Fatalf("E7 different objects: %v", found)
	}
	more := drawn()
	o.Configurations = append(o.Configurations, more.Configurations[1])
	o.Clusters = append(o.Clusters, more.Clusters[2], more.Clusters[2])
	o.Bindings = append(o.Bindings, more.Bindings[0])
	o.Bindings[2].File = "again"
	var got []string
	for _, p := range o.Duplicates() {
		got = append(got, p.String())
	}
	const reason = ": metadata.name: the same object is also in "
	want := []string{
		"1: Configuration/v c" + reason + "1", "2: Cluster/b" + reason + "2", "2: Cluster/b" + reason + "2", "again: WebhookBinding/b" + reason + "0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("E7 (-want +got):\n%s", diff)
	}
}

// A Problem is one line that says where it is and what. Kubernetes' words are kept; a
// value is shown where it is what is wrong, and nowhere else: it may be a secret.
func TestProblem(t *testing.T) {
	at, path := manifest.Origin{File: "f", Object: "Kind/name"}, field.NewPath("spec", "x")
	errs := field.ErrorList{
		field.Invalid(path, "v", "is bad"), field.NotSupported(path, "v", []string{"a"}), field.Duplicate(path, "v"),
		field.Required(path, ""), field.Required(path, "say it"), field.Forbidden(path, "no"), field.TypeInvalid(path, "v", "no"),
		field.TooMany(path, 3, 2), field.TooLong(path, "v", 2), field.NotFound(path, "v"), field.InternalError(path, fmt.Errorf("no")),
	}
	var got []string
	for _, p := range manifest.ProblemsOf("f", "Kind/name", errs) {
		got = append(got, p.String())
	}
	for _, p := range []manifest.Problem{at.Problem(nil, "", "alone"), at.Problem(path, "v\n", "with both"), {Reason: "nowhere"}, {File: "f", Reason: "a file"}} {
		got = append(got, p.String())
	}
	want := []string{
		`f: Kind/name: spec.x: "v": Invalid value: is bad`,
		`f: Kind/name: spec.x: "v": Unsupported value: supported values: "a"`,
		`f: Kind/name: spec.x: "v": Duplicate value`,
		`f: Kind/name: spec.x: Required value`,
		`f: Kind/name: spec.x: Required value: say it`,
		`f: Kind/name: spec.x: Forbidden: no`,
		`f: Kind/name: spec.x: Invalid value: no`,
		`f: Kind/name: spec.x: Too many: must have at most 2 items`,
		`f: Kind/name: spec.x: Too long: may not be more than 2 bytes`,
		`f: Kind/name: spec.x: Not found`,
		`f: Kind/name: spec.x: Internal error: no`,
		`f: Kind/name: alone`,
		`f: Kind/name: spec.x: "v\n": with both`,
		`nowhere`,
		`f: a file`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A value is shown up to 80 bytes, cut between characters.
func TestShownValue(t *testing.T) {
	of := func(n int, last string) string { return string(slices.Repeat([]byte("a"), n)) + last }
	for value, want := range map[string]string{
		of(80, ""): of(80, ""), of(81, ""): of(80, "") + "...", of(78, "\u00e9"): of(78, "\u00e9"), of(79, "\u00e9"): of(79, "") + "...",
	} {
		if got := (manifest.Origin{}).Problem(nil, value, "").Value; got != want {
			t.Errorf("%q is shown as %q", value, got)
		}
	}
}

// What a manifest calls its objects and its fields makes no further line of a problem, and
// no line that nobody reads to its end.
func TestShownNames(t *testing.T) {
	long := strings.Repeat("a", 3000)
	if got := (manifest.Problem{Object: "Plugin/p\nq", Field: "spec.a\r\nb", Reason: "unknown \x1b[31mfield"}).String(); got != "Plugin/p q: spec.a  b: unknown  [31mfield" {
		t.Errorf("shown as %q", got)
	}
	path := field.NewPath(long)
	at := manifest.Origin{Object: long}
	read := func(manifests string) []manifest.Problem {
		return (&manifest.Reader{Sources: []manifest.Source{text(manifests)}}).Read(t.Context()).Problems
	}
	for name, problems := range map[string][]manifest.Problem{
		"validated":     at.Problems(field.ErrorList{field.Invalid(path, long, long)}),
		"compiled":      {at.Problem(path, long, long)},
		"unknown field": read("apiVersion: dispatcher.dev/v1alpha1\nkind: Plugin\nmetadata: {name: " + long + "}\nspec: {" + long + ": 1}"),
		"no number":     read("apiVersion: dispatcher.dev/v1alpha1\nkind: Plugin\nmetadata: {name: " + long + "}\nspec: {order: " + strings.Repeat("9", 3000) + "}"),
	} {
		if len(problems) != 1 {
			t.Fatalf("%s: %d problems", name, len(problems))
		}
		p := problems[0]
		for _, shown := range []string{p.Object, p.Field, p.Reason} {
			if len(shown) > 2048+len("...") {
				t.Errorf("%s: %d bytes are shown: %.60s", name, len(shown), shown)
			}
		}
	}
}

// text is a Source of one manifest.
type text string

func (text) Name() string { return "text" }

func (s text) Read(context.Context) []manifest.File {
	return []manifest.File{{Name: "text.yaml", Data: []byte(s)}}
}

// Problems stand in the order of files and objects, and those of one object as they
// were found.
func TestSortProblems(t *testing.T) {
	list := []manifest.Problem{
		{File: "b", Object: "x", Reason: "4"}, {File: "a", Object: "y", Reason: "2"}, {File: "b", Object: "x", Reason: "5"},
		{File: "a", Object: "x", Reason: "1"}, {File: "b", Object: "x", Reason: "3"}, {Reason: "0"},
	}
	manifest.SortProblems(list)
	var got string
	for _, p := range list {
		got += p.Reason
	}
	if got != "012453" {
		t.Errorf("sorted as %s", got)
	}
}

// What a log line says of a problem is all of it, by name.
func TestAttributes(t *testing.T) {
	p := manifest.Problem{File: "f", Object: "o", Field: "p", Value: "v", Reason: "r"}
	if got := fmt.Sprint(p.Attributes()...); got != "file=f object=o field=p value=v reason=r" {
		t.Errorf("attributes %s", got)
	}
}
