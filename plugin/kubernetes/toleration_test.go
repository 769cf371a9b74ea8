// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import "testing"

const (
	notReady    = "{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}"
	unreachable = "{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}"
)

// The cases of kube-apiserver's own tests: what a pod tolerates, and what it tolerates then.
func TestDefaultTolerationSeconds(t *testing.T) {
	const other = "{key: foo, operator: Equal, value: bar, effect: NoSchedule, tolerationSeconds: 700}"
	for name, row := range map[string]struct{ has, want string }{
		"nothing":                      {"", notReady + "," + unreachable},
		"something else":               {other, other + "," + notReady + "," + unreachable},
		"a node that is not ready":     {"{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 700}", "{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 700}," + unreachable},
		"a node that is not there":     {"{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 700}", "{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 700}," + notReady},
		"both":                         {unreachable + "," + notReady, unreachable + "," + notReady},
		"without an effect":            {"{key: node.kubernetes.io/unreachable, operator: Exists}", "{key: node.kubernetes.io/unreachable, operator: Exists}," + notReady},
		"everything":                   {"{operator: Exists}", "{operator: Exists}"},
		"with a field of later":        {"{key: foo, operator: Exists, later: a}", "{key: foo, operator: Exists, later: a}," + notReady + "," + unreachable},
		"everything of another effect": {"{operator: Exists, effect: NoSchedule}", "{operator: Exists, effect: NoSchedule}," + notReady + "," + unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			configured(t, "DefaultTolerationSeconds", "").mutate(request{object: pod(row.has, "")}).is(t, pod(row.want, ""))
		})
	}
	p := configured(t, "DefaultTolerationSeconds", "{notReadyTolerationSeconds: 0, unreachableTolerationSeconds: -1}")
	p.mutate(request{operation: "UPDATE", object: pod("", "")}).is(t, pod("{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 0},"+
		"{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: -1}", ""))
	p.mutate(request{subresource: "status", object: pod("", "")}).is(t, pod("", ""))
	p.mutate(request{operation: "DELETE"}).says(t, "allowed")
}

// pod is a pod with tolerations, and more in its spec, as YAML.
func pod(tolerations, more string) string {
	spec := more
	if tolerations != "" {
		if spec != "" {
			spec += ", "
		}
		spec += "tolerations: [" + tolerations + "]"
	}
	return "{metadata: {name: web}, spec: {" + spec + "}}"
}

// The cases of kube-apiserver's own tests: what containers request, and what the pod
// tolerates before and then.
func TestExtendedResourceToleration(t *testing.T) {
	const (
		device = "{key: example.com/device-ek, operator: Exists, effect: NoSchedule}"
		second = "{key: example.com/device-do, operator: Exists, effect: NoSchedule}"
		other  = "{key: foo, operator: Equal, value: bar, effect: NoSchedule}"
	)
	requests := func(kind, of string) string { return kind + ": [{name: a, resources: {requests: {" + of + "}}}]" }
	for name, row := range map[string]struct{ requests, has, want string }{
		"nothing":                    {"", "", ""},
		"cpu":                        {requests("containers", "cpu: 1"), "", ""},
		"memory, at first":           {requests("initContainers", "memory: 2Ki"), "", ""},
		"a device":                   {requests("containers", "example.com/device-ek: 1"), "", device},
		"a device, at first":         {requests("initContainers", "example.com/device-do: 2"), "", second},
		"a device beside a taint":    {requests("containers", "cpu: 1, example.com/device-ek: 1"), other, other + "," + device},
		"two, in the order of names": {requests("containers", "example.com/device-ek: 1") + "," + requests("initContainers", "example.com/device-do: 2"), "", second + "," + device},
		"what it tolerates already":  {requests("containers", "example.com/device-ek: 1"), device, device},
		"with another effect and value": {requests("containers", "example.com/device-ek: 1"), "{key: example.com/device-ek, operator: Equal, value: foo, effect: NoExecute}",
			"{key: example.com/device-ek, operator: Equal, value: foo, effect: NoExecute}," + device},
		"everything tolerated":         {requests("containers", "example.com/device-ek: 1"), "{operator: Exists, effect: NoSchedule}", "{operator: Exists, effect: NoSchedule}," + device},
		"for a time, which is dropped": {requests("containers", "example.com/device-ek: 1"), other + ",{key: example.com/device-ek, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}", other + "," + device},
		"of Kubernetes":                {requests("containers", "kubernetes.io/batch: 1, x.kubernetes.io/y: 1"), "", ""},
		"of a quota":                   {requests("containers", "requests.example.com/device: 1"), "", ""},
		"with a name that is too long": {requests("containers", "example.com/"+long+": 1"), "", ""},
		"limits without requests":      {"containers: [{name: a, resources: {limits: {example.com/device-ek: 1}}}]", "", ""},
		"of an ephemeral one":          {requests("ephemeralContainers", "example.com/device-ek: 1"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			configured(t, "ExtendedResourceToleration", "").mutate(request{object: pod(row.has, row.requests)}).is(t, pod(row.want, row.requests))
		})
	}
}

const long = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
