// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// valid is a configuration with nothing to refuse. Each row of refused changes
// something in it.
const valid = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: parity}
webhooks:
- name: first.e2e.example.com
  clientConfig: {url: "https://policy.example.com/first"}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods], scope: Namespaced}]
  sideEffects: None
  admissionReviewVersions: [v1]
`

// refused are changes of one field of the valid webhook, by row of the contract
// about configurations. Of a Service both names are missing: if one is,
// kube-apiserver says that it is the other (it swaps the two arguments).
var refused = []struct {
	row, field, value string
}{
	{"E1 other scheme", "clientConfig", `{url: "http://policy.example.com/"}`},
	{"E1 user", "clientConfig", `{url: "https://user:secret@policy.example.com/"}`},
	{"E1 query", "clientConfig", `{url: "https://policy.example.com/?a=b"}`},
	{"E1 fragment", "clientConfig", `{url: "https://policy.example.com/#a"}`},
	{"E1 no host", "clientConfig", `{url: "https:///first"}`},
	{"E1 no URL at all", "clientConfig", `{}`},
	{"E1 URL and Service", "clientConfig", `{url: "https://policy.example.com/", service: {namespace: a, name: b}}`},
	{"E1 Service without name or namespace", "clientConfig", `{service: {namespace: "", name: ""}}`},
	{"E1 port 0", "clientConfig", `{service: {namespace: a, name: b, port: 0}}`},
	{"E1 port 65536", "clientConfig", `{service: {namespace: a, name: b, port: 65536}}`},
	{"E1 relative path", "clientConfig", `{service: {namespace: a, name: b, path: a}}`},
	{"E1 path with an empty segment", "clientConfig", `{service: {namespace: a, name: b, path: "/a//b"}}`},
	{"E4 timeout 0", "timeoutSeconds", `0`},
	{"E4 timeout 31", "timeoutSeconds", `31`},
	{"E4 operator of the namespaceSelector", "namespaceSelector", `{matchExpressions: [{key: a, operator: Like, values: [b]}]}`},
	{"E4 values of the objectSelector", "objectSelector", `{matchExpressions: [{key: a, operator: In}]}`},
	{"E4 key of the objectSelector", "objectSelector", `{matchLabels: {"a b": c}}`},
	{"E4 value of the namespaceSelector", "namespaceSelector", `{matchLabels: {a: "b c"}}`},
	{"E4 wildcard among groups", "rules", `[{operations: [CREATE], apiGroups: ["*", apps], apiVersions: [v1], resources: [pods]}]`},
	{"E4 wildcard among versions", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: ["*", v1], resources: [pods]}]`},
	{"E4 wildcard among operations", "rules", `[{operations: ["*", CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]`},
	{"E4 wildcard among resources", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: ["*", pods]}]`},
	{"E4 wildcard of everything among resources", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: ["*/*", pods]}]`},
	{"E4 subresource already covered", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: ["pods/*", pods/exec]}]`},
	{"E4 no operation", "rules", `[{operations: [], apiGroups: [""], apiVersions: [v1], resources: [pods]}]`},
	{"E4 unknown operation", "rules", `[{operations: [LIST], apiGroups: [""], apiVersions: [v1], resources: [pods]}]`},
	{"E4 no group", "rules", `[{operations: [CREATE], apiGroups: [], apiVersions: [v1], resources: [pods]}]`},
	{"E4 no version", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [], resources: [pods]}]`},
	{"E4 empty version", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [""], resources: [pods]}]`},
	{"E4 no resource", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: []}]`},
	{"E4 empty resource", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [""]}]`},
	{"E4 unknown scope", "rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods], scope: Both}]`},
	{"E4 name without dots", "name", `first`},
	{"E4 name in capitals", "name", `First.e2e.example.com`},
	{"E4 unknown failurePolicy", "failurePolicy", `Retry`},
	{"E4 unknown matchPolicy", "matchPolicy", `Similar`},
	{"E4 unknown reinvocationPolicy", "reinvocationPolicy", `Always`},
	{"E5 no side effects", "sideEffects", `null`},
	{"E5 side effects Some", "sideEffects", `Some`},
	{"E5 side effects Unknown", "sideEffects", `Unknown`},
	{"E5 no review versions", "admissionReviewVersions", `[]`},
	{"E5 review version twice", "admissionReviewVersions", `[v1, v1]`},
	{"E5 review version that is none", "admissionReviewVersions", `["a b"]`},
	{"E5 review version that nobody knows", "admissionReviewVersions", `[v9]`},
	{"E7 unknown field", "timeoutMinutes", `1`},
	{"E7 case variant of a field", "timeoutseconds", `5`},
	{"E7 case variant of a field inside of another", "clientConfig", `{url: "https://policy.example.com/", URL: "https://policy.example.com/"}`},
	{"E8 condition that does not compile", "matchConditions", `[{name: a, expression: "object."}]`},
	{"E8 condition that is no boolean", "matchConditions", `[{name: a, expression: "1"}]`},
	{"E8 condition of unknown variables", "matchConditions", `[{name: a, expression: "subject.name == 'a'"}]`},
	{"E8 condition without a name", "matchConditions", `[{name: "", expression: "true"}]`},
	{"E8 condition with a bad name", "matchConditions", `[{name: "a b", expression: "true"}]`},
	{"E8 condition without an expression", "matchConditions", `[{name: a, expression: ""}]`},
	{"E8 two conditions of a name", "matchConditions", `[{name: a, expression: "true"}, {name: a, expression: "false"}]`},
	{"E8 65 conditions", "matchConditions", conditions(65)},
}

func conditions(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("{name: c%d, expression: 'true'}", i)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// takenInV1beta1 are the rows that objects of v1beta1 may have: kube-apiserver took
// them as long as it served that version.
var takenInV1beta1 = []string{
	"E5 no side effects", "E5 side effects Some", "E5 side effects Unknown", "E5 no review versions",
}

const v1beta1 = "admissionregistration.k8s.io/v1beta1"

// What kube-apiserver refuses we refuse, at the same fields, in v1beta1 as well.
func TestRefusedConfigurations(t *testing.T) {
	for _, row := range refused {
		t.Run(row.row, func(t *testing.T) {
			o := documents(t, valid)[0]
			var value any
			if err := yaml.Unmarshal([]byte(row.value), &value); err != nil {
				t.Fatal(err)
			}
			o.Object["webhooks"].([]any)[0].(map[string]any)[row.field] = value
			fields := compareVerdicts(t, o, true)
			if slices.Contains(takenInV1beta1, row.row) {
				fields = nil
			}
			o.SetAPIVersion(v1beta1)
			if ours, printed := fieldsOfDispatcher(t, inYAML(t, o), "yaml"); !slices.Equal(fields, ours) {
				t.Errorf("in v1beta1 the dispatcher refuses at %q, want %q\n%s", ours, fields, printed)
			}
		})
	}
	t.Run("E4 two webhooks of a name", func(t *testing.T) {
		o := documents(t, valid)[0]
		list := o.Object["webhooks"].([]any)
		o.Object["webhooks"] = append(list, list[0])
		compareVerdicts(t, o, true)
	})
}

// A key that is written twice is read as the first by some and as the second by
// others: kube-apiserver refuses it if it is asked to be strict, and we always do.
func TestDuplicateKeys(t *testing.T) {
	for _, tt := range []struct{ name, ending, once, twice string }{
		{"E7 duplicate key in YAML", "yaml", "  sideEffects: None\n", "  sideEffects: None\n  sideEffects: NoneOnDryRun\n"},
		{"E7 duplicate key in YAML, inside of another", "yaml", `{url: "https://policy.example.com/first"}`, `{url: "https://policy.example.com/first", url: "https://policy.example.com/second"}`},
		{"E7 duplicate key in JSON", "json", `"sideEffects":"None"`, `"sideEffects":"None","sideEffects":"None"`},
		{"E7 duplicate key in JSON, inside of another", "json", `"url":"https://policy.example.com/first"`, `"url":"https://policy.example.com/first","url":"https://policy.example.com/second"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := valid
			if tt.ending == "json" {
				data, err := documents(t, valid)[0].MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				text = string(data)
			}
			text = strings.Replace(text, tt.once, tt.twice, 1)
			err := shared.alone.client.AdmissionregistrationV1().RESTClient().Post().Resource("mutatingwebhookconfigurations").
				Param("dryRun", metav1.DryRunAll).Param("fieldValidation", metav1.FieldValidationStrict).
				SetHeader("Content-Type", "application/"+tt.ending).Body([]byte(text)).Do(t.Context()).Error()
			if err == nil {
				t.Fatal("kube-apiserver takes it: this row shows nothing")
			}
			_, printed := fieldsOfDispatcher(t, []byte(text), tt.ending)
			if theirs, ours := doubled(err.Error()), doubled(printed); theirs == "" || theirs != ours {
				t.Errorf("kube-apiserver refuses %q, the dispatcher %q\n%v\n%s", theirs, ours, err, printed)
			}
		})
	}
}

// Both name a key of YAML in the words of the library, and the path of a field of
// JSON each in their own.
var doubledKeys = regexp.MustCompile(`key "([^"]+)" already set in map|duplicate field "([^"]+)"|(\S+)  +duplicate field`)

func doubled(text string) string {
	if m := doubledKeys.FindStringSubmatch(text); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}

// The API server of these tests no longer serves v1beta1, which manifests may still
// have: what it refuses in v1 is what is compared.
func TestV1beta1IsNotServed(t *testing.T) {
	o := documents(t, valid)[0]
	o.SetAPIVersion(v1beta1)
	if _, err := shared.alone.resource(o); !meta.IsNoMatchError(err) {
		t.Errorf("kube-apiserver serves v1beta1: compare with that: %v", err)
	}
	if fields, printed := fieldsOfDispatcher(t, inYAML(t, o), "yaml"); len(fields) > 0 {
		t.Errorf("the dispatcher refuses at %q\n%s", fields, printed)
	}
}

func inYAML(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	data, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What kube-apiserver accepts we accept: every example, and the valid webhook.
func TestAcceptedConfigurations(t *testing.T) {
	files, err := filepath.Glob("../examples/quickstart/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	manifests := valid
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifests += "\n---\n" + string(data)
	}
	for _, o := range documents(t, manifests) {
		if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") && !usesCluster(o) {
			t.Run(o.GetName(), func(t *testing.T) { compareVerdicts(t, o, false) })
		}
	}
}

// usesCluster reports whether matchConditions use the variable that is ours.
func usesCluster(o *unstructured.Unstructured) bool {
	data, _ := o.MarshalJSON()
	return strings.Contains(string(data), "cluster.labels")
}

// compareVerdicts returns the fields at which both refuse.
func compareVerdicts(t *testing.T, o *unstructured.Unstructured, refuse bool) []string {
	t.Helper()
	theirs, text := fieldsOfAPIServer(t, o)
	ours, printed := fieldsOfDispatcher(t, inYAML(t, o), "yaml")
	if (len(theirs) > 0) != refuse {
		t.Fatalf("kube-apiserver refuses at %q: this row shows nothing: %s", theirs, text)
	}
	if !slices.Equal(theirs, ours) {
		t.Errorf("kube-apiserver refuses at %q, the dispatcher at %q\n%s\n%s", theirs, ours, text, printed)
	}
	return theirs
}

var quotedField = regexp.MustCompile(`unknown field "([^"]+)"`)

// fieldsOfAPIServer returns where kube-apiserver finds fault with an object, sorted.
func fieldsOfAPIServer(t *testing.T, o *unstructured.Unstructured) ([]string, string) {
	t.Helper()
	resource, err := shared.alone.resource(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = resource.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return nil, ""
	}
	if m := quotedField.FindStringSubmatch(err.Error()); m != nil {
		return m[1:], err.Error()
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		t.Fatalf("kube-apiserver: %v", err)
	}
	var fields []string
	for _, c := range status.ErrStatus.Details.Causes {
		fields = append(fields, c.Field)
	}
	return sorted(fields), err.Error()
}

var problemLine = regexp.MustCompile(`(?m)^problem +\S+ +\S+ +(\S+) `)

// fieldsOfDispatcher returns where "dispatcher validate" finds fault with a manifest,
// whose file's name has that ending.
func fieldsOfDispatcher(t *testing.T, manifest []byte, ending string) ([]string, string) {
	t.Helper()
	d, err := shared.registry()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write("registry/parity."+ending, string(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := d.write("registry/clusters.yaml", strings.ReplaceAll(clusters, "spec: {", "spec: {namespaces: {defaultLabels: {}}, ")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(shared.programs.dispatcher, "validate", "--config", filepath.Join(d.dir, "dispatcher.yaml")).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var fields []string
	for _, m := range problemLine.FindAllStringSubmatch(string(out), -1) {
		fields = append(fields, m[1])
	}
	if (exit != nil) != (len(fields) > 0) {
		t.Fatalf("dispatcher validate: %v\n%s", err, out)
	}
	return sorted(fields), string(out)
}

func sorted(fields []string) []string {
	slices.Sort(fields)
	return slices.Compact(fields)
}
