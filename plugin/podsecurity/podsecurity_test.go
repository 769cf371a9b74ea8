// SPDX-License-Identifier: Apache-2.0

package podsecurity_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// caller is a cluster of a version, with one namespace.
type caller struct {
	hook.Caller // for what is not asked

	minor  int
	labels map[string]string
	err    error
}

func (c caller) StoredLabels(name string, deadline time.Time) (map[string]string, error) {
	if name != "shop" || !deadline.IsZero() {
		return nil, errors.New("another namespace, or a deadline that nobody has set")
	}
	return c.labels, c.err
}

func (c caller) Version() (major, minor int) { return min(1, c.minor), c.minor }

const pod = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"web"},"spec":SPEC}}}`

func ask(t *testing.T, c caller, spec string) (answer plugin.Answer) {
	t.Helper()
	validator, errs := podsecurity.New(podsecurity.Configuration{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	err := plugin.WithReview([]byte(strings.Replace(pod, "SPEC", spec, 1)), c, func(a *plugin.Attributes) {
		var err error
		if answer, err = validator.Validate(t.Context(), a); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// K8 "latest" is what the cluster's API servers take it for: a check of Kubernetes 1.34
// holds from there on, and where the version is not known.
func TestK8LatestIsTheClusters(t *testing.T) {
	const probed = `{"containers":[{"name":"a","image":"a","livenessProbe":{"httpGet":{"port":80,"host":"example.com"}}}]}`
	for minor, denied := range map[int]bool{0: true, 33: false, 34: true, 37: true, 2000: true} {
		got := ask(t, caller{minor: minor, labels: map[string]string{api.EnforceLevelLabel: "baseline"}}, probed)
		if (got.Denied != nil) != denied {
			t.Errorf("1.%d: %+v", minor, got)
		}
	}
	if got := ask(t, caller{labels: map[string]string{api.EnforceLevelLabel: "baseline", api.EnforceVersionLabel: "v1.33"}}, probed); got.Denied != nil {
		t.Errorf("with a version of its own: %+v", got)
	}
}

// K8 Without the namespace a pod is denied as kube-apiserver does, and says why.
func TestK8NamespaceIsNotKnown(t *testing.T) {
	got := ask(t, caller{err: errors.New("stale")}, "{}")
	if got.Denied == nil || got.Denied.Code != 500 || got.Denied.Message != `Internal error occurred: failed to lookup namespace "shop"` ||
		got.Annotations["error"] != `Internal error occurred: failed to lookup namespace "shop": stale` {
		t.Errorf("%+v", got)
	}
}

// All labels that it reads are among those that clusters supply.
func TestLabelsAreNamed(t *testing.T) {
	want := []string{"audit", "audit-version", "enforce", "enforce-version", "warn", "warn-version"}
	var got []string
	for _, label := range podsecurity.Plugin().NamespaceLabels {
		got = append(got, strings.TrimPrefix(label, "pod-security.kubernetes.io/"))
	}
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// K1 A configuration is kube-apiserver's, in any of its versions.
func TestK1Configuration(t *testing.T) {
	w := hook.NewWorkers(0)
	defer w.Close()
	const header = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration"
	for text, want := range map[string]string{
		"{}":         "",
		header + "}": "",
		strings.Replace(header, "/v1", "/v1beta1", 1) + ", defaults: {enforce: baseline, enforce-version: v1.30, audit: restricted, warn: privileged, warn-version: latest}, " +
			"exemptions: {usernames: [a, b], namespaces: [kube-system], runtimeClasses: [kata.x]}}": "",
		strings.Replace(header, "/v1", "/v2", 1) + "}":     `apiVersion: Unsupported value: "pod-security.admission.config.k8s.io/v2": supported values: "pod-security.admission.config.k8s.io/v1"`,
		"{apiVersion: v1, kind: PodSecurityConfiguration}": `apiVersion: Unsupported value: "v1": supported values: "pod-security.admission.config.k8s.io/v1"`,
		"{kind: Pod}":                                      `kind: Unsupported value: "Pod": supported values: "PodSecurityConfiguration"`,
		"{defaults: {enforce: strict}}":                    `defaults.enforce: Invalid value: "strict": must be one of privileged, baseline, restricted`,
		"{defaults: {warn-version: '1.30'}}":               `defaults.warn-version: Invalid value: "1.30": must be "latest" or "v1.x"`,
		"{defaults: {audit: Baseline, audit-version: v2}}": `defaults.audit: Invalid value: "Baseline": must be one of privileged, baseline, restricted; defaults.audit-version: Invalid value: "v2": must be "latest" or "v1.x"`,
		"{exemptions: {usernames: [a, '', a]}}":            `exemptions.usernames[1]: Invalid value: "": username must not be empty; exemptions.usernames[2]: Duplicate value: "a"`,
		"{exemptions: {namespaces: [a, a]}}":               `exemptions.namespaces[1]: Duplicate value: "a"`,
		"{defaults: {enforceVersion: v1.30}}":              `unknown field "defaults.enforceVersion"`,
	} {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, invalid, undecodable := podsecurity.Plugin().Configure(raw, w)
		var got []string
		for _, e := range invalid {
			got = append(got, e.Error())
		}
		for _, e := range undecodable {
			got = append(got, e.Error())
		}
		if diff := gocmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, bad := range []string{"{exemptions: {namespaces: [A]}}", "{exemptions: {runtimeClasses: ['a b']}}"} {
		raw, _ := yaml.YAMLToJSON([]byte(bad))
		if _, invalid, _ := podsecurity.Plugin().Configure(raw, w); len(invalid) != 1 || !strings.HasSuffix(fmt.Sprint(invalid[0].Field), "[0]") {
			t.Errorf("%s: %v", bad, invalid)
		}
	}
}

// asked is one request: what is asked about, and what comes of it.
type asked struct {
	resource, subresource, operation, namespace, user string
	object, old                                       string // JSON
	labels                                            string // of the namespace: enforce, audit, warn
	want                                              string
}

const (
	host       = `{"hostNetwork":true,"containers":[{"name":"a","image":"a"}]}`
	deployment = `{"spec":{"template":{"spec":` + host + `}}}`
	violates   = `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`
)

// K8 The cases beside those of conformance, which are random: each has one line.
func TestK8Cases(t *testing.T) {
	pods := func(spec string) string { return `{"metadata":{"name":"web"},"spec":` + spec + `}` }
	namespace := func(enforce string) string {
		return `{"metadata":{"name":"shop","labels":{"pod-security.kubernetes.io/enforce":"` + enforce + `"}}}`
	}
	for name, q := range map[string]asked{
		"denied":                     {object: pods(host), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"denied by a version":        {object: pods(host), labels: "baseline:v1.20", want: `403 pods "web" is forbidden: ` + strings.Replace(violates, "latest", "v1.20", 1) + " map[enforce-policy:baseline:v1.20]"},
		"audited":                    {object: pods(host), labels: ",baseline", want: `map[audit-violations:would ` + strings.Replace(violates, "violates", "violate", 1) + ` enforce-policy:privileged:latest]`},
		"warned":                     {object: pods(host), labels: ",,baseline", want: `warns would ` + strings.Replace(violates, "violates", "violate", 1) + ` map[enforce-policy:privileged:latest]`},
		"labels that say nothing":    {object: pods(`{}`), labels: "strict", want: `map[enforce-policy:restricted:latest error:Failed to parse policy: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted]`},
		"another class":              {object: pods(`{"runtimeClassName":"kata","hostNetwork":true}`), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"privileged by no version":   {object: pods(host), labels: "privileged:1", want: `map[enforce-policy:privileged:latest error:Failed to parse policy: metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "1": must be "latest" or "v1.x"]`},
		"no object, privileged":      {object: "null", want: "map[enforce-policy:privileged:latest]"},
		"privileged":                 {object: pods(host), want: "map[enforce-policy:privileged:latest]"},
		"an exempt namespace":        {object: pods(host), namespace: "exempt", labels: "baseline", want: "map[exempt:namespace]"},
		"an exempt user":             {object: pods(host), user: "robot", labels: "baseline", want: "map[exempt:user]"},
		"an exempt class":            {object: pods(`{"runtimeClassName":"gvisor","hostNetwork":true}`), labels: "baseline", want: "map[exempt:runtimeClass]"},
		"no class":                   {object: pods(`{"runtimeClassName":"","hostNetwork":true}`), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"a status":                   {subresource: "status", object: pods(host), labels: "baseline"},
		"a later subresource":        {subresource: "later", object: pods(host), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"an update of nothing":       {operation: "UPDATE", object: pods(host), old: pods(host), labels: "baseline"},
		"an update of an image":      {operation: "UPDATE", object: pods(host), old: pods(strings.Replace(host, `"image":"a"`, `"image":"b"`, 1)), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"an update with a container": {operation: "UPDATE", object: pods(host), old: pods(`{}`), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"an ephemeral one more":      {operation: "UPDATE", subresource: "ephemeralcontainers", object: pods(`{"hostNetwork":true,"ephemeralContainers":[{"name":"e"}]}`), old: pods(`{"hostNetwork":true}`), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"an ephemeral one as before": {operation: "UPDATE", object: pods(`{"hostNetwork":true,"ephemeralContainers":[{"name":"e"}]}`), old: pods(`{"hostNetwork":true,"ephemeralContainers":[{"name":"e"}]}`), labels: "baseline"},
		"an ephemeral one's image":   {operation: "UPDATE", object: pods(`{"hostNetwork":true,"ephemeralContainers":[{"name":"e","image":"b"}]}`), old: pods(`{"hostNetwork":true,"ephemeralContainers":[{"name":"e","image":"a"}]}`), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"an init container's image":  {operation: "UPDATE", object: pods(`{"hostNetwork":true,"initContainers":[{"name":"e","image":"b"}]}`), old: pods(`{"hostNetwork":true,"initContainers":[{"name":"e","image":"a"}]}`), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"an init container less":     {operation: "UPDATE", object: pods(`{"hostNetwork":true}`), old: pods(`{"hostNetwork":true,"initContainers":[{"name":"e","image":"a"}]}`), labels: "baseline", want: `403 pods "web" is forbidden: ` + violates + " map[enforce-policy:baseline:latest]"},
		"no object":                  {object: "null", labels: "baseline", want: "400 failed to decode object map[error:failed to decode object]"},
		"no old object":              {operation: "UPDATE", object: pods(host), labels: "baseline", want: "400 failed to decode old object map[error:failed to decode old object]"},

		"a workload":                       {resource: "apps/deployments", object: deployment, labels: "baseline,,baseline", want: `warns would ` + strings.Replace(violates, "violates", "violate", 1) + " map[]"},
		"a workload that is enforced":      {resource: "apps/deployments", object: deployment, labels: "baseline,,privileged"},
		"a workload that is audited":       {resource: "apps/deployments", object: deployment, labels: ",baseline", want: `map[audit-violations:would ` + strings.Replace(violates, "violates", "violate", 1) + `]`},
		"a workload's scale":               {resource: "apps/deployments", subresource: "scale", object: deployment, labels: "baseline"},
		"a workload that is exempt":        {resource: "apps/deployments", namespace: "exempt", object: deployment, labels: "baseline", want: "map[exempt:namespace]"},
		"a workload without a template":    {resource: "replicationcontrollers", object: `{"spec":{}}`, labels: "baseline"},
		"a workload that is none":          {resource: "apps/deployments", object: `{"spec":1}`, labels: "baseline", want: "map[error:failed to decode object: the object cannot be decoded as v1.Deployment: spec is not a v1.DeploymentSpec]"},
		"a workload by no version":         {resource: "apps/deployments", object: deployment, labels: "baseline,privileged,privileged:1", want: `map[error:Failed to parse policy: metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1": must be "latest" or "v1.x"]`},
		"a workload that is null":          {resource: "apps/deployments", object: "null", labels: "baseline,,baseline"},
		"no workload, privileged":          {resource: "apps/deployments", object: `{"spec":1}`, labels: "privileged"},
		"a workload of nobody knows where": {resource: "apps/deployments", object: deployment, labels: "?", want: `map[error:failed to lookup namespace "shop": not found]`},
		"something else":                   {resource: "configmaps", object: `{}`, labels: "restricted"},
		"another group":                    {resource: "example.com/pods", object: pods(host), labels: "baseline"},
		"another group's namespaces":       {resource: "example.com/namespaces", object: namespace("strict")},

		"a namespace":                     {resource: "namespaces", object: namespace("baseline")},
		"a namespace that says nothing":   {resource: "namespaces", object: namespace("strict"), want: `422 K "web" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted`},
		"as before":                       {resource: "namespaces", operation: "UPDATE", object: namespace("strict"), old: namespace("strict")},
		"nothing in another word":         {resource: "namespaces", operation: "UPDATE", object: namespace("strict"), old: namespace("stricter"), want: `422 K "web" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted`},
		"stricter":                        {resource: "namespaces", operation: "UPDATE", object: namespace("restricted"), old: namespace("baseline"), want: `warns existing pods in namespace "shop" were not checked against the new PodSecurity enforce level "restricted:latest" map[]`},
		"good from now on":                {resource: "namespaces", operation: "UPDATE", object: namespace("baseline"), old: namespace("strict")},
		"less strict":                     {resource: "namespaces", operation: "UPDATE", object: namespace("baseline"), old: namespace("restricted")},
		"privileged from now on":          {resource: "namespaces", operation: "UPDATE", object: namespace("privileged"), old: namespace("restricted")},
		"deleted":                         {resource: "namespaces", operation: "DELETE", object: "null", old: namespace("restricted")},
		"finalized":                       {resource: "namespaces", subresource: "finalize", operation: "UPDATE", object: namespace("strict"), old: namespace("baseline")},
		"no namespace":                    {resource: "namespaces", object: "null", want: "400 failed to decode object map[error:failed to decode object]"},
		"no old namespace":                {resource: "namespaces", operation: "UPDATE", object: namespace("baseline"), want: "400 failed to decode old object map[error:failed to decode old object]"},
		"an exempt namespace with labels": {resource: "namespaces", namespace: "exempt", object: namespace("baseline"), want: `warns namespace "shop" is exempt from Pod Security, and the policy (enforce=baseline:latest) will be ignored map[]`},
		"an exempt namespace, stricter":   {resource: "namespaces", operation: "UPDATE", namespace: "exempt", object: namespace("baseline"), old: namespace("privileged"), want: `warns namespace "shop" is exempt from Pod Security, and the policy (enforce=baseline:latest) will be ignored map[]`},
		"an exempt one without":           {resource: "namespaces", namespace: "exempt", object: namespace("privileged")},
		"an exempt one, as by default":    {resource: "namespaces", namespace: "exempt", object: `{"metadata":{"name":"shop"}}`},
		"an exempt one, not audited":      {resource: "namespaces", namespace: "exempt", object: `{"metadata":{"name":"shop","labels":{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/audit":"privileged"}}}`, want: `warns namespace "shop" is exempt from Pod Security, and the policy (enforce=baseline:latest) will be ignored map[]`},
		"an exempt one with a version":    {resource: "namespaces", namespace: "exempt", object: `{"metadata":{"name":"shop","labels":{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/warn-version":"v1.30"}}}`, want: `warns namespace "shop" is exempt from Pod Security, and the policy (enforce=baseline:latest, warn=baseline:v1.30) will be ignored map[]`},
		"another version, less strict":    {resource: "namespaces", operation: "UPDATE", object: strings.Replace(namespace("baseline"), `"labels":{`, `"labels":{"pod-security.kubernetes.io/enforce-version":"v1.30",`, 1), old: namespace("restricted"), want: `warns existing pods in namespace "shop" were not checked against the new PodSecurity enforce level "baseline:v1.30" map[]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := q.answer(t); got != q.want {
				t.Errorf("it says\n%s\nwant\n%s", got, q.want)
			}
		})
	}
}

// answer says what comes of a request, in a line.
func (q asked) answer(t *testing.T) string {
	t.Helper()
	group, resource, ok := strings.Cut(cmp.Or(q.resource, "pods"), "/")
	if !ok {
		group, resource = "", group
	}
	review := fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":%[1]q,"version":"v1","kind":"K"},`+
		`"resource":{"group":%[1]q,"version":"v1","resource":%[2]q},"subResource":%[3]q,"name":"web","namespace":%[4]q,"operation":%[5]q,"userInfo":{"username":%[6]q},"object":%[7]s,"oldObject":%[8]s}}`,
		group, resource, q.subresource, cmp.Or(q.namespace, "shop"), cmp.Or(q.operation, "CREATE"), cmp.Or(q.user, "ann"), q.object, cmp.Or(q.old, "null"))
	validator, errs := podsecurity.New(podsecurity.Configuration{Exemptions: podsecurity.Exemptions{
		Usernames: []string{"robot"}, Namespaces: []string{"exempt"}, RuntimeClasses: []string{"gvisor"},
	}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var answer plugin.Answer
	err := plugin.WithReview([]byte(review), named{said: q.labels}, func(a *plugin.Attributes) {
		var err error
		if answer, err = validator.Validate(t.Context(), a); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	if answer.Denied != nil {
		said = append(said, fmt.Sprint(answer.Denied.Code, " ", answer.Denied.Message))
	}
	for _, w := range answer.Warnings {
		said = append(said, "warns "+w)
	}
	if len(answer.Annotations) > 0 || len(answer.Warnings) > 0 {
		said = append(said, fmt.Sprint(answer.Annotations))
	}
	return strings.Join(said, " ")
}

// named is a cluster of which each namespace has labels: enforce[:version], audit and warn,
// divided by commas; "?": it has no namespace.
type named struct {
	hook.Caller // for what is not asked

	said string
}

func (n named) StoredLabels(string, time.Time) (map[string]string, error) {
	if n.said == "?" {
		return nil, errors.New("not found")
	}
	labels := map[string]string{}
	for i, said := range strings.Split(n.said, ",") {
		label := []string{api.EnforceLevelLabel, api.AuditLevelLabel, api.WarnLevelLabel}[i]
		if said == "" {
			continue
		}
		level, version, ok := strings.Cut(said, ":")
		if labels[label] = level; ok {
			labels[label+"-version"] = version
		}
	}
	return labels, nil
}

func (named) Version() (major, minor int) { return 1, 37 }
