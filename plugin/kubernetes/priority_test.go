// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var priorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}

// The classes of kube-apiserver's own tests.
const (
	default1    = "{metadata: {name: default1}, value: 1000, globalDefault: true}"
	default2    = "{metadata: {name: default2}, value: 2000, globalDefault: true}"
	nondefault1 = "{metadata: {name: nondefault1}, value: 2000}"
	critical    = "{metadata: {name: system-cluster-critical}, value: 2000000000, globalDefault: true}"
	never       = "{metadata: {name: never}, value: 2000, globalDefault: true, preemptionPolicy: Never}"
	lower       = "{metadata: {name: lower}, value: 2000, globalDefault: true, preemptionPolicy: PreemptLowerPriority}"
)

// The cases of kube-apiserver's own tests: classes, a pod, and what the pod becomes, or the
// denial.
func TestPriorityOfPods(t *testing.T) {
	const (
		forbidden = `403 pods "web" is forbidden: `
		byDefault = "priority: 0, preemptionPolicy: PreemptLowerPriority"
	)
	for name, row := range map[string]struct {
		classes   []string
		pod, want string
	}{
		"a class":                             {[]string{default1, nondefault1}, "priorityClassName: default1", "priorityClassName: default1, priority: 1000"},
		"the default class":                   {[]string{default1}, "", "priorityClassName: default1, priority: 1000"},
		"no class at all":                     {nil, "", byDefault},
		"no default class":                    {[]string{nondefault1}, "", byDefault},
		"of two default classes the lower":    {[]string{default2, default1}, "", "priorityClassName: default1, priority: 1000"},
		"of two equal ones the first by name": {[]string{never, lower}, "", "priorityClassName: lower, priority: 2000, preemptionPolicy: PreemptLowerPriority"},
		"a class of the system":               {[]string{critical}, "priorityClassName: system-cluster-critical", "priorityClassName: system-cluster-critical, priority: 2000000000"},
		"a class that is not there":           {[]string{default1, nondefault1}, "priorityClassName: none", forbidden + "no PriorityClass with name none was found"},
		"a number, of a class that is not":    {nil, "priorityClassName: default1, priority: 1000", forbidden + "no PriorityClass with name default1 was found"},
		"another number": {[]string{nondefault1}, "priorityClassName: nondefault1, priority: 1000",
			forbidden + "the integer value of priority (1000) must not be provided in pod spec; priority admission controller computed 2000 from the given PriorityClass name"},
		"the number without a class":       {[]string{nondefault1}, "priority: 0", byDefault},
		"the number of the default":        {[]string{default2}, "priority: 2000", "priorityClassName: default2, priority: 2000"},
		"the number of the class":          {[]string{critical}, "priorityClassName: system-cluster-critical, priority: 2000000000", "priorityClassName: system-cluster-critical, priority: 2000000000"},
		"no policy, which the class has":   {[]string{never}, "priorityClassName: never, priority: 2000", "priorityClassName: never, priority: 2000, preemptionPolicy: Never"},
		"the policy of the class":          {[]string{lower}, "priorityClassName: lower, preemptionPolicy: PreemptLowerPriority", "priorityClassName: lower, priority: 2000, preemptionPolicy: PreemptLowerPriority"},
		"a policy, and the class has none": {[]string{default1}, "preemptionPolicy: Never", "priorityClassName: default1, priority: 1000, preemptionPolicy: Never"},
		"another policy": {[]string{lower}, "priorityClassName: lower, priority: 2000, preemptionPolicy: Never",
			forbidden + "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name"},
	} {
		t.Run(name, func(t *testing.T) {
			p := configured(t, "Priority", "")
			q := request{object: pod("", row.pod), caller: storing(t, priorityClasses, row.classes...)}
			if row.want[0] == '4' {
				p.mutate(q).says(t, row.want)
			} else {
				p.mutate(q).is(t, pod("", row.want))
				again := q
				again.object = pod("", row.want)
				p.mutate(again).is(t, again.object)
			}
			p.validate(q).says(t, "allowed")
			for _, other := range []request{{operation: "DELETE"}, {subresource: "status"}, {resource: "apps/pods"}, {resource: "scheduling.k8s.io/podgroups"}} {
				other.object, other.caller = q.object, q.caller
				p.mutate(other).is(t, q.object)
			}
		})
	}
}

// An update keeps what the creation gave, and nothing is looked up.
func TestPriorityOfUpdates(t *testing.T) {
	p := configured(t, "Priority", "")
	for _, row := range []struct{ old, object, want string }{
		{"priority: 7, preemptionPolicy: Never", "priorityClassName: none", "priorityClassName: none, priority: 7, preemptionPolicy: Never"},
		{"priority: 7, preemptionPolicy: Never", "priority: 8, preemptionPolicy: PreemptLowerPriority", "priority: 8, preemptionPolicy: PreemptLowerPriority"},
		{"", "priorityClassName: a", "priorityClassName: a"},
	} {
		p.mutate(request{operation: "UPDATE", object: pod("", row.object), old: pod("", row.old), caller: silent{}}).is(t, pod("", row.want))
	}
}

// The cases of kube-apiserver's own tests: a second default class is denied.
func TestPriorityClasses(t *testing.T) {
	const denied = `403 priorityclasses.scheduling.k8s.io "web" is forbidden: PriorityClass default1 is already marked as default. Only one default can exist`
	p := configured(t, "Priority", "")
	for name, row := range map[string]struct {
		operation, stored, object, want string
	}{
		"the first one":             {"CREATE", "", default1, "allowed"},
		"a second one":              {"CREATE", default1, default2, denied},
		"the same one once more":    {"CREATE", default1, default1, denied},
		"one of the system":         {"CREATE", "", critical, "allowed"},
		"none":                      {"CREATE", default1, nondefault1, "allowed"},
		"beside none":               {"CREATE", nondefault1, default1, "allowed"},
		"it becomes the first one":  {"UPDATE", nondefault1, default1, "allowed"},
		"it becomes a second one":   {"UPDATE", default1, default2, denied},
		"it is the first one":       {"UPDATE", default1, default1, "allowed"},
		"it is no default any more": {"UPDATE", default1, nondefault1, "allowed"},
		"it is deleted":             {"DELETE", default1, "", "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := asked{t, p.Instance}
			q := request{operation: row.operation, resource: "scheduling.k8s.io/priorityclasses", kind: "PriorityClass", object: row.object, caller: storing(t, priorityClasses, row.stored)}
			if row.stored == "" {
				q.caller = storing(t, priorityClasses)
			}
			p.validate(q).says(t, row.want)
			q.subresource = "other"
			p.validate(q).says(t, "allowed")
		})
	}
}
