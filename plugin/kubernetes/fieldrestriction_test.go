// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

// What users may not set, change or remove, and what stays as it is.
func TestK21FieldRestriction(t *testing.T) {
	const configuration = `
restrictions:
- name: tenants
  exempt: {users: [root], groups: [ops]}
  labels: {denied: ["example.com/*", team], allowed: [example.com/app]}
  annotations: {allowed: ["note*"]}
  taints: [{key: dedicated}, {key: gpu, value: "yes", effect: NoSchedule}]
  fields:
  - {path: spec.hostNetwork}
  - {path: "spec.containers[*].args"}
  - {path: spec.level, values: [0, 5]}
  - {path: spec.extras.*.extra}
  - {path: "spec.containers[*].tty", values: [false]}
  - {path: 'spec.nodeSelector["example.com/zone"]'}
- name: second
  labels: {denied: [plain]}
`
	labels := func(of string) string { return "{metadata: {name: web, labels: {" + of + "}}}" }
	annotations := func(of string) string { return "{metadata: {name: web, annotations: {" + of + "}}}" }
	args := func(of ...string) string {
		containers := ""
		for _, a := range of {
			containers += "{name: a, args: [" + a + "]}, "
		}
		return pod("", "containers: ["+containers+"{name: b}]")
	}
	const dedicated = "{key: dedicated, operator: Exists}"
	for name, row := range map[string]struct{ now, before, want string }{
		"nothing":                              {"{metadata: {name: web}}", "", ""},
		"no object":                            {"", "", ""},
		"a label":                              {labels("example.com/tier: a"), "", "label example.com/tier"},
		"a label of that name":                 {labels("team: a"), "", "label team"},
		"a longer name":                        {labels("teams: a, example.org/tier: a"), "", ""},
		"a label that is allowed":              {labels("example.com/app: a"), "", ""},
		"a label that stays":                   {labels("team: a, b: c"), labels("team: a"), ""},
		"a label that changes":                 {labels("team: b"), labels("team: a"), "label team"},
		"a label that is removed":              {labels("b: c"), labels("team: a"), "label team"},
		"an empty label":                       {labels(`team: ""`), labels("b: c"), "label team"},
		"labels, in order":                     {labels("team: b, example.com/a: b, example.com/b: c"), labels("example.com/c: c"), "label example.com/a, label example.com/b, label example.com/c, label team"},
		"an annotation":                        {annotations("a: b"), "", "annotation a"},
		"annotations that are allowed":         {annotations("note: b, notes: c"), "", ""},
		"a toleration":                         {pod(dedicated, ""), "", "a toleration of taint dedicated"},
		"of a value":                           {pod("{key: dedicated, value: a, effect: NoExecute}", ""), "", "a toleration of taint dedicated"},
		"of everything":                        {pod("{operator: Exists}", ""), "", "a toleration of taint dedicated"},
		"that stays":                           {pod(dedicated, ""), pod(dedicated, ""), ""},
		"that stays, for another time":         {pod("{key: dedicated, operator: Exists, effect: NoExecute, tolerationSeconds: 5}", ""), pod("{key: dedicated, operator: Exists, effect: NoExecute}", ""), ""},
		"that is removed":                      {pod("", ""), pod(dedicated, ""), ""},
		"of another value of the key":          {pod(`{key: gpu, value: "no"}`, ""), "", ""},
		"of the value":                         {pod(`{key: gpu, operator: Equal, value: "yes"}`, ""), "", "a toleration of taint gpu=yes:NoSchedule"},
		"of any value of the key":              {pod(`{key: gpu, operator: Exists}`, ""), "", "a toleration of taint gpu=yes:NoSchedule"},
		"of the value with another effect":     {pod(`{key: gpu, value: "yes", effect: NoExecute}`, ""), "", ""},
		"of a value that is compared":          {pod(`{key: gpu, operator: Gt, value: "5"}`, ""), "", "a toleration of taint gpu=yes:NoSchedule"},
		"of another key":                       {pod("{key: other, operator: Exists}", ""), "", ""},
		"of the key, and of another effect":    {pod("{key: dedicated, operator: Exists, effect: NoSchedule}", ""), pod("{key: dedicated, operator: Exists, effect: NoExecute}", ""), "a toleration of taint dedicated"},
		"a field":                              {pod("", "hostNetwork: true"), "", "field spec.hostNetwork"},
		"a field that stays":                   {pod("", "hostNetwork: true"), pod("", "hostNetwork: true"), ""},
		"a field that is removed":              {pod("", ""), pod("", "hostNetwork: true"), "field spec.hostNetwork"},
		"a field in a list":                    {args("a"), args(), "field spec.containers[*].args"},
		"a field in a list that stays":         {args("a", "b"), args("a", "b"), ""},
		"a field in a list that moves":         {args("a, b", "c"), args("a", "b, c"), "field spec.containers[*].args"},
		"a field in a list that is another's":  {pod("", "containers: [{name: a}, {name: b, args: [a]}]"), pod("", "containers: [{name: a, args: [a]}, {name: b}]"), "field spec.containers[*].args"},
		"a value that is allowed":              {pod("", "level: 5"), "", ""},
		"a value that is not":                  {pod("", "level: 6"), pod("", "level: 5"), "field spec.level"},
		"a value that is no number":            {pod("", `level: "5"`), "", "field spec.level"},
		"a value that is removed":              {pod("", ""), pod("", "level: 6"), "field spec.level"},
		"an allowed value that is removed":     {pod("", ""), pod("", "level: 5"), ""},
		"a value of no value that is removed":  {pod("", ""), pod("", "level: null"), "field spec.level"},
		"a value that becomes an allowed one":  {pod("", "level: 5"), pod("", "level: 6"), ""},
		"an allowed one beside one that stays": {pod("", "containers: [{tty: true}, {tty: false}]"), pod("", "containers: [{tty: true}]"), ""},
		"another one beside one that stays":    {pod("", "containers: [{tty: true}, {tty: true}]"), pod("", "containers: [{tty: true}]"), "field spec.containers[*].tty"},
		"a container with it that is removed":  {pod("", "containers: [{tty: false}]"), pod("", "containers: [{tty: false}, {tty: true}]"), "field spec.containers[*].tty"},
		"a container without that is removed":  {pod("", "containers: [{tty: false}]"), pod("", "containers: [{tty: false}, {tty: false}]"), ""},
		"a value in a map":                     {pod("", "extras: {a: {extra: 1}}"), "", "field spec.extras.*.extra"},
		"a value in a map that moves":          {pod("", "extras: {a: {extra: 1}}"), pod("", "extras: {b: {extra: 1}}"), "field spec.extras.*.extra"},
		"a value in quotes":                    {pod("", "nodeSelector: {example.com/zone: a}"), "", "field spec.nodeSelector[\"example.com/zone\"]"},
		"below something that is no object":    {pod("", "extras: a"), "", ""},
		"everything at once":                   {pod(dedicated, "hostNetwork: true"), "", "a toleration of taint dedicated, field spec.hostNetwork"},
	} {
		t.Run(name, func(t *testing.T) {
			q := request{object: row.now, old: row.before}
			if row.before != "" {
				q.operation = "UPDATE"
			}
			want := "allowed"
			if row.want != "" {
				want = `403 pods "web" is forbidden: restriction "tenants": user "ann" may not set ` + row.want
			}
			p := configured(t, "FieldRestriction", configuration)
			if row.now == "" {
				q.operation = "DELETE"
				p.validate(q).says(t, "allowed")
				return
			}
			p.validate(q).says(t, want)
			q.user = "root"
			p.validate(q).says(t, "allowed")
			q.user, q.groups = "bob", []string{"dev", "ops"}
			p.validate(q).says(t, "allowed")
		})
	}
	p := configured(t, "FieldRestriction", configuration)
	p.validate(request{object: labels("plain: a"), groups: []string{"ops"}}).says(t, `403 pods "web" is forbidden: restriction "second": user "ann" may not set label plain`)
	template := func(of string) string {
		return "{metadata: {name: web}, spec: {template: {spec: {tolerations: [" + of + "]}}}}"
	}
	const denied = `403 deployments.apps "web" is forbidden: restriction "tenants": user "ann" may not set a toleration of taint dedicated`
	p.validate(request{resource: "apps/deployments", object: template(dedicated)}).says(t, denied)
	p.validate(request{operation: "UPDATE", resource: "apps/deployments", object: template(dedicated), old: template("")}).says(t, denied)
	p.validate(request{operation: "UPDATE", resource: "apps/deployments", object: template(dedicated), old: template(dedicated)}).says(t, "allowed")
	p.validate(request{resource: "services", object: template(dedicated)}).says(t, "allowed")
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("example.com/%02d: a", i))
	}
	if got := p.validate(request{object: labels(strings.Join(many, ", "))}).String(); !strings.HasSuffix(got, "label example.com/09, ...") {
		t.Error(got)
	}
}

// A subresource is no way around: it is asked about what an API server writes by it.
func TestK21FieldRestrictionOfSubresources(t *testing.T) {
	const configuration = `{restrictions: [{name: a, labels: {denied: [team]}, annotations: {denied: [team]}, fields: [{path: spec.replicas}, {path: "spec.ephemeralContainers[*].tty"}]}]}`
	const labelled, noted, plain = "{metadata: {name: web, labels: {team: a}}}", "{metadata: {name: web, annotations: {team: a}}}", "{metadata: {name: web}}"
	p := configured(t, "FieldRestriction", configuration)
	for _, row := range []struct{ operation, resource, subresource, now, before, want string }{
		{"UPDATE", "pods", "status", labelled, plain, "label team"},
		{"UPDATE", "pods", "status", labelled, labelled, ""},
		{"UPDATE", "pods", "status", plain, noted, "annotation team"},
		{"UPDATE", "pods", "ephemeralcontainers", pod("", "ephemeralContainers: [{tty: true}]"), plain, "field spec.ephemeralContainers[*].tty"},
		{"UPDATE", "pods", "resize", labelled, plain, "label team"},
		{"CREATE", "pods", "binding", labelled, "", "label team"},
		{"CREATE", "pods", "binding", plain, "", ""},
		{"CREATE", "bindings", "", noted, "", "annotation team"},
		{"UPDATE", "replicationcontrollers", "status", noted, plain, "annotation team"},
		{"UPDATE", "replicationcontrollers", "scale", "{spec: {replicas: 3}}", "{spec: {replicas: 2}}", "field spec.replicas"},
		{"UPDATE", "apps/deployments", "scale", "{spec: {replicas: 3}}", "{spec: {replicas: 2}}", "field spec.replicas"},
		{"UPDATE", "apps/replicasets", "scale", "{spec: {replicas: 2}}", "{spec: {replicas: 2}}", ""},
		{"UPDATE", "apps/statefulsets", "scale", "{spec: {replicas: 3}}", "{spec: {}}", "field spec.replicas"},
		{"UPDATE", "apps/deployments", "status", noted, plain, "annotation team"},
		{"UPDATE", "apps/daemonsets", "status", labelled, plain, "label team"},
		{"UPDATE", "apps/replicasets", "status", labelled, plain, "label team"},
		{"UPDATE", "apps/statefulsets", "status", labelled, plain, "label team"},
		{"UPDATE", "batch/jobs", "status", labelled, plain, "label team"},
		{"UPDATE", "batch/cronjobs", "status", labelled, plain, "label team"},
	} {
		name := strings.TrimSuffix(row.resource+"/"+row.subresource, "/")
		t.Run(name+" "+row.want, func(t *testing.T) {
			group, of, _ := cutLast(row.resource)
			whole := strings.TrimSuffix(of+"/"+row.subresource, "/")
			selected := slices.ContainsFunc(kubernetes.FieldRestriction().Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
				return slices.Contains(r.Operations, admissionregistrationv1.OperationType(row.operation)) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, whole)
			})
			if !selected {
				t.Error("no rule selects it")
			}
			got := p.validate(request{operation: row.operation, resource: row.resource, subresource: row.subresource, object: row.now, old: row.before}).String()
			if row.want == "" && got != "allowed" || row.want != "" && !strings.HasSuffix(got, "may not set "+row.want) {
				t.Error(got)
			}
		})
	}
}

func TestK21FieldRestrictionConfiguration(t *testing.T) {
	of := func(what string) string { return "{restrictions: [{name: a, " + what + "}]}" }
	many := strings.Repeat("a, ", 100) + "a"
	for configuration, want := range map[string]string{
		"{}": "restrictions: Required value: at least one restriction",
		"{restrictions: [" + strings.Repeat("{name: a}, ", 101) + "]}": "restrictions: Too many: 101: must have at most 100 items",
		"{restrictions: [{labels: {denied: [a]}}]}":                    "restrictions[0].name: Required value: denials name it",
		of("exempt: {}"): "restrictions[0]: Required value: labels, annotations, taints or fields",
		of(`labels: {denied: ["a*b", ""]}`): "restrictions[0].labels.denied[0]: Invalid value: \"a*b\": must be a key, or the beginning of one with a * at its end\n" +
			"restrictions[0].labels.denied[1]: Invalid value: \"\": must be a key, or the beginning of one with a * at its end",
		of(`annotations: {allowed: ["**"]}`):                       "restrictions[0].annotations.allowed[0]: Invalid value: \"**\": must be a key, or the beginning of one with a * at its end",
		of("annotations: {allowed: [" + many + "]}"):               "restrictions[0].annotations.allowed: Too many: 101: must have at most 100 items",
		of("taints: [{effect: Never}]"):                            "restrictions[0].taints[0].key: Required value: the key of a taint\nrestrictions[0].taints[0].effect: Unsupported value: \"Never\": supported values: \"NoExecute\", \"NoSchedule\", \"PreferNoSchedule\"",
		of("taints: [" + strings.Repeat("{key: a}, ", 101) + "]"):  "restrictions[0].taints: Too many: 101: must have at most 100 items",
		of("fields: [" + strings.Repeat("{path: a}, ", 101) + "]"): "restrictions[0].fields: Too many: 101: must have at most 100 items",
		of("fields: [{path: a..b}]"):                               "restrictions[0].fields[0].path: Invalid value: \"a..b\": must be names with dots between them; a name with a dot stands as [\"name\"]",
	} {
		if _, problems := configure(t, "FieldRestriction", configuration); problems != want {
			t.Errorf("%s: it says\n%s\nwant\n%s", configuration, problems, want)
		}
	}
}
