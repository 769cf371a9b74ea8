// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var runtimeClasses = schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}

// The cases of kube-apiserver's own tests: a class, a pod, and what the pod becomes, or the
// denial.
func TestRuntimeClass(t *testing.T) {
	const (
		forbidden = `403 pods "web" is forbidden: `
		other     = forbidden + "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
		without   = forbidden + "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
		overhead  = "overhead: {podFixed: {cpu: 100m, memory: 1}}"
		own       = "overhead: {cpu: 100m, memory: '1'}"
	)
	for name, row := range map[string]struct{ class, pod, mutated, validated string }{
		"overhead":                        {overhead, "", own, other},
		"overhead, which the pod has":     {overhead, own, own, "allowed"},
		"overhead, written otherwise":     {overhead, "overhead: {cpu: 0.1, memory: 1000m}", "overhead: {cpu: 0.1, memory: 1000m}", "allowed"},
		"another overhead":                {"overhead: {podFixed: {cpu: 10, memory: 10G}}", own, other, other},
		"more overhead":                   {overhead, "overhead: {cpu: 100m}", other, other},
		"overhead of something else":      {overhead, "overhead: {cpu: 100m, gpu: 1}", other, other},
		"overhead of nothing":             {"overhead: {}", "", "", "allowed"},
		"overhead of nothing, for a pod":  {"overhead: {podFixed: {}}", own, other, other},
		"no overhead":                     {"", own, own, without},
		"nothing":                         {"", "", "", "allowed"},
		"no scheduling":                   {"", "nodeSelector: {foo: bar}", "nodeSelector: {foo: bar}", "allowed"},
		"a node selector":                 {"scheduling: {nodeSelector: {foo: bar}}", "", "nodeSelector: {foo: bar}", "allowed"},
		"a node selector of another":      {"scheduling: {nodeSelector: {foo: conflict}}", "nodeSelector: {foo: bar}", forbidden + "conflict: runtimeClass.scheduling.nodeSelector[foo] = conflict; pod.spec.nodeSelector[foo] = bar", "allowed"},
		"two of them":                     {"scheduling: {nodeSelector: {b: x, a: x}}", "nodeSelector: {b: z, a: z}", forbidden + "conflict: runtimeClass.scheduling.nodeSelector[a] = x; pod.spec.nodeSelector[a] = z", "allowed"},
		"a node selector that it has":     {"scheduling: {nodeSelector: {foo: bar}}", "nodeSelector: {foo: bar}", "nodeSelector: {foo: bar}", "allowed"},
		"a node selector that it has not": {"scheduling: {nodeSelector: {foo: bar, fizz/a: buzz}}", "nodeSelector: {foo: bar}", "nodeSelector: {foo: bar, fizz/a: buzz}", "allowed"},
		"tolerations": {"scheduling: {tolerations: [{key: foo, operator: Equal, value: bar, effect: NoSchedule}, {key: fizz, operator: Equal, value: buzz, effect: NoSchedule}]}",
			"nodeSelector: {foo: bar}, tolerations: [{key: foo, operator: Equal, value: bar, effect: NoSchedule, later: 1}]",
			"nodeSelector: {foo: bar}, tolerations: [{key: foo, operator: Equal, value: bar, effect: NoSchedule, later: 1}, {key: fizz, operator: Equal, value: buzz, effect: NoSchedule}]", "allowed"},
		"all of it": {overhead + ", scheduling: {nodeSelector: {a: b}, tolerations: [{operator: Exists}]}", "tolerations: [{key: a, operator: Exists}, {key: b}]",
			own + ", nodeSelector: {a: b}, tolerations: [{operator: Exists}]", other},
	} {
		t.Run(name, func(t *testing.T) {
			p := configured(t, "RuntimeClass", "")
			with := func(more string) string {
				if more != "" {
					more = ", " + more
				}
				return pod("", "runtimeClassName: kata"+more)
			}
			q := request{object: with(row.pod), caller: storing(t, runtimeClasses, "{metadata: {name: kata}, handler: h, "+row.class+"}")}
			if row.mutated != "" && row.mutated[0] == '4' {
				p.mutate(q).says(t, row.mutated)
			} else {
				p.mutate(q).is(t, with(row.mutated))
				admitted := q
				admitted.object = with(row.mutated)
				if row.validated != without {
					p.validate(admitted).says(t, "allowed")
				}
			}
			p.validate(q).says(t, row.validated)
			for _, other := range []request{{operation: "UPDATE"}, {subresource: "status"}, {resource: "apps/pods"}} {
				other.object, other.caller = q.object, q.caller
				p.mutate(other).is(t, q.object)
				p.validate(other).says(t, "allowed")
			}
		})
	}
	p := configured(t, "RuntimeClass", "")
	nameless := request{object: pod("", `runtimeClassName: ""`), caller: storing(t, runtimeClasses)}
	p.mutate(nameless).says(t, "403 resource name may not be empty")
	p.validate(nameless).says(t, "403 resource name may not be empty")
	unknown := request{object: pod("", "runtimeClassName: gvisor"), caller: storing(t, runtimeClasses)}
	p.mutate(unknown).says(t, `403 pods "web" is forbidden: pod rejected: RuntimeClass "gvisor" not found`)
	p.validate(unknown).says(t, `403 pods "web" is forbidden: pod rejected: RuntimeClass "gvisor" not found`)
	p.validate(request{object: pod("", own), caller: storing(t, runtimeClasses)}).says(t, without)
	p.mutate(request{object: pod("", own), caller: storing(t, runtimeClasses)}).is(t, pod("", own))
	p.validate(request{object: pod("", ""), caller: storing(t, runtimeClasses)}).says(t, "allowed")
}
