// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/lint"
)

// hook is a validating webhook of configuration c, in YAML.
func hook(fields string) string { return configuration("Validating", "c", fields) }

func configuration(kind, name string, webhooks ...string) string {
	text := "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "WebhookConfiguration\nmetadata: {name: " + name + "}\nwebhooks:\n"
	for i, fields := range webhooks {
		text += fmt.Sprintf("- {name: h%d.example.com, sideEffects: None, admissionReviewVersions: [v1], %s}\n", i, fields)
	}
	return text + "---\n"
}

// rule is rules with one rule, for any version.
func rule(group, resource string) string {
	return fmt.Sprintf(`rules: [{apiGroups: [%q], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [%q]}]`, group, resource)
}

func read(t *testing.T, manifests ...string) lint.Input {
	t.Helper()
	var r lint.Reader
	for _, m := range manifests {
		if err := r.Read("f", []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	return r.Input()
}

// of returns the findings of one rule, as "level webhook field: text".
func of(in lint.Input, id string) (list []string) {
	for _, f := range lint.Check(in) {
		if f.Rule.ID != id {
			continue
		}
		at := ""
		if f.At != nil {
			at = f.At.String()
		}
		list = append(list, fmt.Sprintf("%s %s: %s", f.Level, at, f.Text))
	}
	return list
}

// gardener is what Gardener's matcher of problematic webhooks has, in the versions that
// are served today: namespace/resource.group.
var gardener = strings.Fields(`
kube-system/pods kube-system/pods/status kube-system/configmaps default/endpoints kube-system/endpoints kube-system/secrets
kube-system/serviceaccounts kube-system/services default/services kube-system/services/status default/services/status
nodes nodes/status namespaces namespaces/status
kube-system/controllerrevisions.apps kube-system/daemonsets.apps kube-system/daemonsets/status.apps kube-system/deployments.apps
kube-system/deployments/scale.apps kube-system/replicasets.apps kube-system/replicasets/status.apps kube-system/replicasets/scale.apps
kube-node-lease/leases.coordination.k8s.io kube-system/leases.coordination.k8s.io kube-system/networkpolicies.networking.k8s.io
clusterroles.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io
kube-system/roles.rbac.authorization.k8s.io kube-system/rolebindings.rbac.authorization.k8s.io
customresourcedefinitions.apiextensions.k8s.io customresourcedefinitions/status.apiextensions.k8s.io
apiservices.apiregistration.k8s.io apiservices/status.apiregistration.k8s.io
certificatesigningrequests.certificates.k8s.io certificatesigningrequests/status.certificates.k8s.io certificatesigningrequests/approval.certificates.k8s.io
priorityclasses.scheduling.k8s.io`)

// Every row of Gardener's list is found in a webhook that selects everything and fails
// closed, and each in a webhook that selects nothing else.
func TestGardenersList(t *testing.T) {
	found := lint.Check(read(t, hook(rule("*", "*/*"))))
	at := slices.IndexFunc(found, func(f lint.Finding) bool { return f.Rule.ID == "W1" })
	if at < 0 || found[at].Level != lint.Error {
		t.Fatalf("no error: %v", found)
	}
	for _, row := range gardener {
		if !slices.Contains(found[at].Stops, row) {
			t.Errorf("%s is not found", row)
		}
		path, group, _ := strings.Cut(row, ".")
		namespace, resource, ok := strings.Cut(path, "/")
		if !ok || namespace != "kube-system" && namespace != "default" && namespace != "kube-node-lease" {
			resource = path
		}
		alone := lint.Check(read(t, hook(rule(group, resource))))
		if !slices.ContainsFunc(alone, func(f lint.Finding) bool {
			return f.Rule.ID == "W1" && f.Level == lint.Warning && slices.Contains(f.Stops, row)
		}) {
			t.Errorf("%s alone is not found: %v", row, alone)
		}
	}
}

// What leaves a request out is believed: a namespaceSelector, an objectSelector, a
// condition about who asks or about the request, a scope, other operations, Ignore.
func TestVital(t *testing.T) {
	everything := rule("*", "*/*")
	for name, c := range map[string]struct{ fields, want string }{
		"everything": {everything, "leases, node heartbeats, nodes that join, writes in kube-system, the start of the API server, reviews of authentication and authorization"},
		"Ignore":     {everything + ", failurePolicy: Ignore", ""},
		"without kube-system": {everything + `, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}`,
			"leases, node heartbeats, nodes that join, the start of the API server, reviews of authentication and authorization"},
		"an opted in namespace": {rule("*", "*") + `, namespaceSelector: {matchLabels: {policy: "on"}}`, "nodes that join, the start of the API server, reviews of authentication and authorization"},
		"opted in objects":      {everything + `, objectSelector: {matchLabels: {policy: "on"}}`, ""},
		"not the API server": {everything + `, matchConditions: [{name: a, expression: 'request.userInfo.username != "system:apiserver"'}]`,
			"leases, node heartbeats, nodes that join, writes in kube-system, reviews of authentication and authorization"},
		"not kubelets":             {rule("", "nodes") + `, matchConditions: [{name: a, expression: '!("system:nodes" in request.userInfo.groups)'}]`, ""},
		"a condition that fails":   {rule("", "nodes") + `, matchConditions: [{name: a, expression: 'object.spec.absent == "x"'}]`, "nodes that join"},
		"cluster-scoped":           {`rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], scope: Cluster}]`, "nodes that join, the start of the API server, reviews of authentication and authorization"},
		"deletions":                {`rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [nodes]}]`, ""},
		"an old version":           {`rules: [{apiGroups: [apps], apiVersions: [v1beta1], operations: [CREATE], resources: [daemonsets]}]`, "writes in kube-system"},
		"what it names only":       {rule("example.com", "things") + `, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [shop]}]}`, ""},
		"a resource of somebody":   {rule("example.com", "things"), "writes in kube-system"},
		"deletions in kube-system": {`rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [DELETE], resources: [things]}]`, "writes in kube-system"},
		"no rules":                 {`failurePolicy: Fail`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string(nil)
			if c.want != "" {
				want = []string{"with failurePolicy Fail an outage of this webhook stops " + c.want}
			}
			got := of(read(t, hook(c.fields)), "W1")
			for i := range got {
				_, got[i], _ = strings.Cut(got[i], ": ")
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

const namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: hooks, labels: {policy: "off"}}
---
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: hooks}
spec: {selector: {app: hook}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: hook-1, namespace: hooks, labels: {kubernetes.io/service-name: hook}}
endpoints: [{addresses: [10.0.0.1], conditions: {ready: %s}}]
---
`

const inHooks = `clientConfig: {service: {name: hook, namespace: hooks}}, `

const notKubeSystem = `, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}`

// TestRules has, for each rule but W1, what it finds and what it leaves alone.
func TestRules(t *testing.T) {
	pods := rule("", "pods")
	between := func(own, other string) string {
		return fmt.Sprintf(`clientConfig: {service: {name: s, namespace: %s}}, %s, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [%s]}]}`, own, pods, other)
	}
	for _, c := range []struct {
		id, name  string
		manifests []string
		want      int
	}{
		{"W2", "every resource", []string{hook(rule("*", "*"))}, 1},
		{"W2", "every resource of a group", []string{hook(rule("apps", "*"))}, 0},
		{"W2", "a resource of every group", []string{hook(rule("*", "pods"))}, 0},
		{"W3", "no selector", []string{hook(pods)}, 1},
		{"W3", "an empty one", []string{hook(pods + `, namespaceSelector: {}`)}, 1},
		{"W3", "one that leaves out kube-system", []string{hook(pods + notKubeSystem)}, 0},
		{"W3", "a condition that does", []string{hook(pods + `, matchConditions: [{name: a, expression: 'request.namespace != "kube-system"'}]`)}, 0},
		{"W3", "Ignore", []string{hook(pods + ", failurePolicy: Ignore")}, 0},
		{"W3", "cluster-scoped", []string{hook(rule("rbac.authorization.k8s.io", "clusterroles"))}, 0},
		{"W4", "its own namespace", []string{hook(inHooks + pods + notKubeSystem)}, 1},
		{"W4", "Ignore", []string{hook(inHooks + pods + ", failurePolicy: Ignore")}, 0},
		{"W4", "other resources", []string{hook(inHooks + rule("", "secrets"))}, 0},
		{"W4", "a URL", []string{hook(`clientConfig: {url: "https://hooks.example.com"}, ` + pods)}, 0},
		{"W4", "left out by a label that it has", []string{namespaces, hook(inHooks + pods + `, namespaceSelector: {matchExpressions: [{key: policy, operator: NotIn, values: ["off"]}]}`)}, 0},
		{"W4", "left out by a label that it does not have", []string{hook(inHooks + pods + `, namespaceSelector: {matchExpressions: [{key: policy, operator: NotIn, values: ["off"]}]}`)}, 1},
		{"W4", "pods that the Service selects", []string{fmt.Sprintf(service, "true"), hook(inHooks + pods + `, objectSelector: {matchLabels: {app: hook}}`)}, 1},
		{"W4", "pods that the Service does not select", []string{fmt.Sprintf(service, "true"), hook(inHooks + pods + `, objectSelector: {matchLabels: {app: other}}`)}, 0},
		{"W4", "two that wait for each other", []string{configuration("Validating", "a", between("one", "two")), configuration("Mutating", "b", between("two", "one"))}, 1},
		{"W4", "three in a circle", []string{configuration("Validating", "a", between("one", "two"), between("two", "three"), between("three", "one"))}, 1},
		{"W4", "one that waits for another", []string{configuration("Validating", "a", between("one", "two"), between("two", "shop"))}, 0},
		{"W5", "16 s", []string{hook(pods + ", timeoutSeconds: 16")}, 1},
		{"W5", "15 s", []string{hook(pods + ", timeoutSeconds: 15")}, 0},
		{"W5", "leases, the default", []string{hook(rule("coordination.k8s.io", "leases") + ", failurePolicy: Ignore")}, 1},
		{"W5", "leases, 3 s", []string{hook(rule("coordination.k8s.io", "leases") + ", failurePolicy: Ignore, timeoutSeconds: 3")}, 0},
		{"W5", "v1beta1 has 30 s", []string{strings.Replace(hook(pods), "/v1\n", "/v1beta1\n", 1)}, 1},
		{"W5", "four mutating ones of 8 s", []string{configuration("Mutating", "m", slices.Repeat([]string{pods + ", timeoutSeconds: 8"}, 4)...)}, 1},
		{"W5", "three mutating ones of 10 s", []string{configuration("Mutating", "m", pods, pods, pods)}, 0},
		{"W5", "four validating ones of 8 s", []string{configuration("Validating", "m", slices.Repeat([]string{pods + ", timeoutSeconds: 8"}, 4)...)}, 0},
		{"W6", "a label of objects", []string{hook(pods + `, objectSelector: {matchExpressions: [{key: ignore, operator: DoesNotExist}]}`)}, 1},
		{"W6", "a label of namespaces", []string{hook(pods + `, namespaceSelector: {matchExpressions: [{key: admission.gatekeeper.sh/ignore, operator: DoesNotExist}]}`)}, 1},
		{"W6", "the name of a namespace", []string{hook(pods + notKubeSystem)}, 0},
		{"W6", "an opt-in", []string{hook(pods + `, objectSelector: {matchLabels: {policy: "on"}}`)}, 0},
		{"W6", "a mutating one", []string{configuration("Mutating", "m", pods+`, objectSelector: {matchExpressions: [{key: ignore, operator: DoesNotExist}]}`)}, 0},
		{"W7", "no ready endpoint", []string{fmt.Sprintf(service, "false"), hook(inHooks + pods)}, 1},
		{"W7", "a ready endpoint", []string{fmt.Sprintf(service, "true"), hook(inHooks + pods)}, 0},
		{"W7", "no Service", []string{fmt.Sprintf(service, "true"), hook(`clientConfig: {service: {name: other, namespace: hooks}}, ` + pods)}, 1},
		{"W7", "nothing known of endpoints", []string{strings.Split(fmt.Sprintf(service, "false"), "---")[0], hook(inHooks + pods)}, 0},
		{"W7", "an external name", []string{strings.Replace(fmt.Sprintf(service, "false"), "selector: {app: hook}", "type: ExternalName", 1), hook(inHooks + pods)}, 0},
		{"W7", "v1beta1, side effects unknown", []string{strings.Replace(strings.Replace(hook(pods), "/v1\n", "/v1beta1\n", 1), "sideEffects: None, ", "", 1)}, 2},
		{"W7", "side effects", []string{strings.Replace(hook(pods), "sideEffects: None", "sideEffects: Some", 1)}, 1},
	} {
		t.Run(c.id+" "+c.name, func(t *testing.T) {
			if got := of(read(t, c.manifests...), c.id); len(got) != c.want {
				t.Errorf("%q, want %d", got, c.want)
			}
		})
	}
}

// TestBundle: a bundle lasts as long as the last of its certificates.
func TestBundle(t *testing.T) {
	authority, err := pki.NewAuthority("a")
	if err != nil {
		t.Fatal(err)
	}
	in := read(t, hook(rule("", "secrets")+notKubeSystem))
	in.Configurations[0].Webhooks[0].ClientConfig.CABundle = authority.PEM
	for years, want := range map[int]string{-1: "", 0: "warning webhooks[0].clientConfig.caBundle: expires", 1000: "error webhooks[0].clientConfig.caBundle: expired"} {
		in.Now = time.Now().AddDate(years, 0, 0)
		if got := strings.Join(of(in, "W7"), ", "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("after %d years %q, want %q", years, got, want)
		}
	}
}

// TestReader: lists, JSON, several documents; other kinds are left out.
func TestReader(t *testing.T) {
	in := read(t, `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [{"name": "a"}, {"name": "b"}]},
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "c"}}]}`,
		`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfigurationList
items: [{metadata: {name: m}, webhooks: [{name: c}]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics.example.io}
spec: {group: metrics.example.io, service: {name: metrics, namespace: monitoring}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.apps}
spec: {group: apps}
`)
	if len(in.Configurations) != 2 || len(in.Configurations[0].Webhooks) != 2 || !in.Configurations[1].Mutating || in.Configurations[1].Object != "MutatingWebhookConfiguration/m" {
		t.Errorf("configurations %+v", in.Configurations)
	}
	if in.Services != nil || len(in.APIServices) != 1 {
		t.Errorf("Services %v, APIServices %v", in.Services, in.APIServices)
	}
	if err := new(lint.Reader).Read("f", []byte("kind: [")); err == nil {
		t.Error("no error of what is no YAML")
	}
}

// TestPage: docs/lint.md has a section for each rule, with its title.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/lint.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range lint.Rules() {
		if !strings.Contains(string(page), fmt.Sprintf("## %s\n\n**%s%s.**\n", r.ID, strings.ToUpper(r.Title[:1]), r.Title[1:])) {
			t.Errorf("no section %s: %s", r.ID, r.Title)
		}
		if r.Remedy == "" || !strings.HasSuffix(r.Link(), "#"+strings.ToLower(r.ID)) {
			t.Errorf("%s has remedy %q and link %q", r.ID, r.Remedy, r.Link())
		}
	}
}
