// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// namespaceShop is the namespace shop with an annotation, unless that is "-".
func namespaceShop(annotation, value string) string {
	if value == "-" {
		return "{metadata: {name: shop}}"
	}
	return fmt.Sprintf("{metadata: {name: shop, annotations: {%q: %q}}}", annotation, value)
}

const nodeSelector = "scheduler.alpha.kubernetes.io/node-selector"

// The cases of kube-apiserver's own tests: selectors of the cluster, the namespace ("-": it
// has none), its whitelist and the pod, and what the pod has then; "": it is denied.
func TestPodNodeSelector(t *testing.T) {
	const (
		conflict    = `403 pods "web" is forbidden: pod node label selector conflicts with its namespace node label selector`
		whitelisted = `403 pods "web" is forbidden: pod node label selector labels conflict with its namespace whitelist`
	)
	for name, row := range map[string]struct{ byDefault, namespace, whitelist, pod, want, denied string }{
		"nothing":                             {"", "-", "", "", "", ""},
		"a default":                           {"infra = false", "-", "", "", "infra: 'false'", ""},
		"the namespace's, with spaces":        {"", " infra = false ", "", "", "infra: 'false'", ""},
		"the namespace's, not the default":    {"infra = false", "infra=true", "", "", "infra: 'true'", ""},
		"the namespace's, which is empty":     {"infra = false", "", "", "", "", ""},
		"with the pod's":                      {"infra = false", "infra=true", "", "env: test", "env: test, infra: 'true'", ""},
		"the pod's is the same":               {"", "infra=true", "", "infra: 'true'", "infra: 'true'", ""},
		"the pod's is another":                {"env = test", "infra=true", "", "infra: 'false'", "", conflict},
		"one of the pod's is":                 {"env=dev", "infra=false, env = test", "", "env: dev, color: blue", "", conflict},
		"the whitelist has all":               {"env=dev", "infra=false, env = dev", "env=dev, infra=false, color=blue", "env: dev, color: blue", "env: dev, infra: 'false', color: blue", ""},
		"the whitelist has another value":     {"env=dev", "infra=false, env = dev", "env=dev, infra=true, color=blue", "env: dev, color: blue", "", whitelisted},
		"the whitelist lacks the pod's":       {"", "env=dev", "env=dev", "color: blue", "", whitelisted},
		"the whitelist forbids the default":   {"env=dev", "-", "env=prd", "", "", whitelisted},
		"the namespace's cannot be read":      {"env=dev", "env", "", "", "", "403 invalid selector: [env]"},
		"the namespace's has no label's name": {"", "-=a", "", "", "", `403 <nil>: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
	} {
		t.Run(name, func(t *testing.T) {
			p := configured(t, "PodNodeSelector", fmt.Sprintf("{podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: %q, shop: %q}}", row.byDefault, row.whitelist))
			web := pod("", "")
			if row.pod != "" {
				web = pod("", "nodeSelector: {"+row.pod+"}")
			}
			q := request{object: web, caller: storing(t, namespaces, namespaceShop(nodeSelector, row.namespace))}
			if row.denied != "" {
				p.mutate(q).says(t, row.denied)
			} else {
				want := pod("", "")
				if row.want != "" {
					want = pod("", "nodeSelector: {"+row.want+"}")
				}
				p.mutate(q).is(t, want)
				admitted := q
				admitted.object = want
				p.validate(admitted).says(t, "allowed")
			}
			if strings.Contains(row.denied, "conflicts with its namespace") || strings.Contains(row.denied, "nvalid") {
				p.validate(q).says(t, row.denied)
			}
			for _, other := range []request{{operation: "UPDATE"}, {subresource: "status"}, {resource: "apps/pods"}} {
				other.object, other.caller = web, q.caller
				p.mutate(other).is(t, web)
				p.validate(other).says(t, "allowed")
			}
		})
	}
	// The whitelist of another namespace says nothing, and a namespace may not be there.
	p := configured(t, "PodNodeSelector", "{podNodeSelectorPluginConfig: {other: a=b}}")
	web := pod("", "nodeSelector: {c: d}")
	p.validate(request{object: web, caller: storing(t, namespaces, namespaceShop(nodeSelector, "-"))}).says(t, "allowed")
	p.validate(request{object: web, caller: storing(t, namespaces)}).says(t, "500 Internal error occurred: namespace shop does not exist")
	p.mutate(request{object: web, caller: storing(t, namespaces)}).says(t, "500 Internal error occurred: namespace shop does not exist")
	configured(t, "PodNodeSelector", "").validate(request{object: web, caller: storing(t, namespaces, namespaceShop(nodeSelector, "-"))}).says(t, "allowed")
}

// K1 A configuration that kube-apiserver would pass over, or fail pods by, is refused.
func TestPodNodeSelectorConfiguration(t *testing.T) {
	for configuration, want := range map[string]string{
		"{podNodeSelectorPluginConfig: {a: b, clusterDefaultNodeSelector: 'c=d=e', f: g=h}}": "podNodeSelectorPluginConfig[a]: Invalid value: \"b\": invalid selector: [b]\n" +
			`podNodeSelectorPluginConfig[clusterDefaultNodeSelector]: Invalid value: "c=d=e": invalid selector: [c d e]`,
		"{podNodeSelectorPluginConfig: {a: 'b=-'}}": `podNodeSelectorPluginConfig[a][b]: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		"{podNodeSelectorPluginConfig: {a: 7}}":     "json: cannot unmarshal number into Go struct field nodeSelectorConfiguration.podNodeSelectorPluginConfig of type string",
		"{clusterDefaultNodeSelector: a=b}":         `unknown field "clusterDefaultNodeSelector"`,
	} {
		if made, problems := configure(t, "PodNodeSelector", configuration); made != nil || problems != want {
			t.Errorf("%s: it says\n%s\nwant\n%s", configuration, problems, want)
		}
	}
}
