// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var limitRanges = schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}

// limitRange is one in the namespace shop.
func limitRange(name string, limits ...string) string {
	return "{metadata: {name: " + name + ", namespace: shop}, spec: {limits: [" + strings.Join(limits, ", ") + "]}}"
}

// containers are n of the same resources, and init containers of others, which may begin with
// their restart policy: Always is that of sidecars.
func containers(n int, resources string, init ...string) string {
	var list, before []string
	for i := range n {
		list = append(list, fmt.Sprintf("{name: c%d, resources: %s}", i, resources))
	}
	for i, r := range init {
		policy, own, ok := strings.Cut(strings.TrimSpace(r), " {")
		if ok && policy != "" && policy[0] != '{' {
			before = append(before, fmt.Sprintf("{name: i%d, restartPolicy: %s, resources: {%s}", i, policy, own))
		} else {
			before = append(before, fmt.Sprintf("{name: i%d, resources: %s}", i, r))
		}
	}
	return "containers: [" + strings.Join(list, ", ") + "], initContainers: [" + strings.Join(before, ", ") + "]"
}

// A row of limits.txt has a limit, containers, init containers, the resources of the pod and
// what is violated, with a bar between them.
func TestLimitRangerValidates(t *testing.T) {
	text, err := os.ReadFile("testdata/limits.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := configured(t, "LimitRanger", "")
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		columns := strings.Split(line, "|")
		if len(columns) != 5 {
			t.Fatalf("line %d has %d columns", i+1, len(columns))
		}
		var n int
		if _, err := fmt.Sscanf(columns[1], " %d x", &n); err != nil {
			t.Fatal(line, err)
		}
		_, resources, _ := strings.Cut(columns[1], "x ")
		var init []string
		if s := strings.TrimSpace(columns[2]); s != "" {
			init = strings.Split(s, " ; ")
		}
		spec := containers(n, resources, init...)
		if own := strings.TrimSpace(columns[3]); own != "" {
			spec += ", resources: " + own
		}
		t.Run(fmt.Sprint("line ", i+1), func(t *testing.T) {
			p := asked{t, p.Instance}
			cluster := storing(t, limitRanges, limitRange("a", columns[0]))
			want := strings.TrimSpace(columns[4])
			if want != "allowed" {
				want = `403 pods "web" is forbidden: ` + want
			}
			p.validate(request{object: pod("", spec), caller: cluster}).says(t, want)
			p.validate(request{operation: "UPDATE", subresource: "resize", object: pod("", spec), old: pod("", spec), caller: cluster}).says(t, want)
			p.mutate(request{object: pod("", spec), caller: cluster}).is(t, pod("", spec))
		})
	}
}

// bounded is a LimitRange with bounds, defaults and a limit for pods.
var bounded = limitRange("a",
	"{type: Pod, max: {cpu: 200m, memory: 4Gi}, min: {cpu: 50m, memory: 2Mi}}",
	"{type: Container, max: {cpu: 100m, memory: 2Gi}, min: {cpu: 25m, memory: 1Mi}, default: {cpu: 75m, memory: 10Mi}, defaultRequest: {cpu: 50m, memory: 5Mi}}")

// Containers get what they do not say, and an annotation says what that is.
func TestLimitRangerMutates(t *testing.T) {
	const all = "{requests: {cpu: 50m, memory: 5Mi}, limits: {cpu: 75m, memory: 10Mi}}"
	note := func(text string) string {
		return "metadata: {name: web, annotations: {kubernetes.io/limit-ranger: 'LimitRanger plugin set: " + text + "'}}"
	}
	p := configured(t, "LimitRanger", "")
	for name, row := range map[string]struct{ object, want string }{
		"nothing is said": {
			"{metadata: {name: web}, spec: {" + containers(1, "{}") + "}}",
			"{" + note("cpu, memory request for container c0; cpu, memory limit for container c0") + ", spec: {" + containers(1, all) + "}}",
		},
		"some is": {
			"{metadata: {name: web}, spec: {" + containers(1, "{requests: {memory: 512Mi}}", "{limits: {cpu: 1}, claims: [{name: a}], later: 1}") + "}}",
			"{" + note("cpu request for container c0; cpu, memory limit for container c0; cpu, memory request for init container i0; memory limit for init container i0") +
				", spec: {" + containers(1, "{requests: {cpu: 50m, memory: 512Mi}, limits: {cpu: 75m, memory: 10Mi}}",
				"{requests: {cpu: 50m, memory: 5Mi}, limits: {cpu: 1, memory: 10Mi}, claims: [{name: a}], later: 1}") + "}}",
		},
		"all is": {
			"{metadata: {name: web}, spec: {" + containers(1, all, "Always "+all) + "}}",
			"{metadata: {name: web}, spec: {" + containers(1, all, "Always "+all) + "}}",
		},
		"there are no resources in a container": {
			"{metadata: {name: web}, spec: {containers: [{name: c0}], initContainers: []}}",
			"{" + note("cpu, memory request for container c0; cpu, memory limit for container c0") + ", spec: {" + containers(1, all) + "}}",
		},
		"there are annotations": {
			"{metadata: {name: web, annotations: {a: b, kubernetes.io/limit-ranger: before}}, spec: {" + containers(1, "{}") + "}}",
			"{metadata: {name: web, annotations: {a: b, kubernetes.io/limit-ranger: 'LimitRanger plugin set: cpu, memory request for container c0; cpu, memory limit for container c0'}}, spec: {" +
				containers(1, all) + "}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := asked{t, p.Instance}
			p.mutate(request{object: row.object, caller: storing(t, limitRanges, bounded)}).is(t, row.want)
			p.mutate(request{operation: "UPDATE", subresource: "resize", object: row.object, old: row.object, caller: storing(t, limitRanges, bounded)}).is(t, row.want)
			p.mutate(request{object: row.object, namespace: "store", caller: storing(t, limitRanges, bounded)}).is(t, row.object)
		})
	}
	// Several are added in the order of their names, and the last that adds something is told.
	several := storing(t, limitRanges, limitRange("z", "{type: Container, default: {cpu: 3, memory: 3Mi}}", "{type: Pod, default: {storage: 1}}"),
		limitRange("b", "{type: Container, default: {cpu: 1}}", "{type: Container, default: {cpu: 2}}"))
	p.mutate(request{object: "{metadata: {name: web}, spec: {containers: [{name: c0, resources: {}}]}}", caller: several}).is(t,
		"{"+note("memory limit for container c0")+", spec: {containers: [{name: c0, resources: {limits: {cpu: '2', memory: 3Mi}}}]}}")
}

// Of what is violated each is told once, in the order of limits, containers and names; of
// several LimitRanges the first by name.
func TestLimitRangerTells(t *testing.T) {
	p := configured(t, "LimitRanger", "")
	cluster := storing(t, limitRanges, limitRange("z", "{type: Pod, max: {a: 1}}"),
		limitRange("b", "{type: Container, min: {memory: 1Mi, cpu: 1}, max: {cpu: 2}, maxLimitRequestRatio: {cpu: 2}}", "{type: Pod, min: {cpu: 3}}"))
	for range 20 {
		p.validate(request{object: pod("", containers(2, "{requests: {cpu: 500m}, limits: {cpu: 3}}", "{}")), caller: cluster}).says(t, `403 pods "web" is forbidden: [`+
			"minimum cpu usage per Container is 1, but request is 500m, minimum memory usage per Container is 1Mi.  No request is specified, "+
			"maximum cpu usage per Container is 2, but limit is 3, cpu max limit to request ratio per Container is 2, but provided ratio is 6.000000, "+
			"minimum cpu usage per Container is 1.  No request is specified, maximum cpu usage per Container is 2.  No limit is specified, "+
			"cpu max limit to request ratio per Container is 2, but no request is specified or request is 0, minimum cpu usage per Pod is 3, but request is 1]")
	}
}

// Updates of pods, other subresources and what is being deleted are not looked at.
func TestLimitRangerIgnores(t *testing.T) {
	p := configured(t, "LimitRanger", "")
	cluster := storing(t, limitRanges, bounded, limitRange("b", "{type: PersistentVolumeClaim, max: {storage: 1Gi}}"))
	web, leaving := pod("", containers(1, "{}")), "{metadata: {name: web, deletionTimestamp: '2026-01-01T00:00:00Z'}}"
	for _, q := range []request{
		{operation: "UPDATE", object: web, old: web}, {operation: "UPDATE", subresource: "status", object: web, old: web}, {subresource: "binding", object: web},
		{subresource: "resize", object: web}, {operation: "UPDATE", subresource: "resize", object: web, old: leaving}, {operation: "DELETE", old: web},
		{resource: "apps/pods", object: web}, {resource: "persistentvolumeclaims", operation: "UPDATE", object: "{}", old: leaving},
		{resource: "persistentvolumeclaims", subresource: "status", operation: "UPDATE", object: "{}"}, {resource: "persistentvolumeclaims", operation: "DELETE", old: "{}"},
	} {
		q.caller = cluster
		p.validate(q).says(t, "allowed")
		if got := p.mutate(q); !got.Allowed || got.Patch != nil {
			t.Errorf("%+v: %s %s", q, got, got.Patch)
		}
	}
}

func TestLimitRangerOfClaims(t *testing.T) {
	p := configured(t, "LimitRanger", "")
	for name, row := range map[string]struct{ limit, requests, want string }{
		"at the minimum":     {"min: {storage: 1Gi}", "storage: 1Gi", ""},
		"at the maximum":     {"max: {storage: 1Gi}", "storage: 1Gi", ""},
		"without bounds":     {"", "storage: 100Gi", ""},
		"between them":       {"min: {storage: 1Gi}, max: {storage: 10Gi}", "storage: 5Gi", ""},
		"below the minimum":  {"min: {storage: 1Gi}", "storage: 500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"},
		"above the maximum":  {"min: {storage: 1Gi}, max: {storage: 1Gi}", "storage: 100Gi", "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 100Gi"},
		"without a request":  {"max: {storage: 1Gi}", "", "maximum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified"},
		"of several at once": {"min: {b: 2, a: 2}, max: {storage: 1}", "a: 1, storage: 2", "[minimum a usage per PersistentVolumeClaim is 2, but request is 1, minimum b usage per PersistentVolumeClaim is 2.  No request is specified, maximum storage usage per PersistentVolumeClaim is 1, but request is 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := asked{t, p.Instance}
			want := "allowed"
			if row.want != "" {
				want = `403 persistentvolumeclaims "web" is forbidden: ` + row.want
			}
			q := request{resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim", object: "{spec: {resources: {requests: {" + row.requests + "}}}}",
				caller: storing(t, limitRanges, limitRange("a", "{type: Container, max: {storage: 1}}", "{type: PersistentVolumeClaim, "+row.limit+"}"))}
			p.validate(q).says(t, want)
			q.operation, q.old = "UPDATE", "{}"
			p.validate(q).says(t, want)
			p.mutate(q).is(t, q.object)
		})
	}
}

// K12 What whoever writes pods and LimitRanges can make long is bounded: a denial, in no
// time, and never with more messages than have room in an answer.
func TestK12LimitRangerIsBounded(t *testing.T) {
	p := configured(t, "LimitRanger", "")
	many := func(n int, format string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return strings.Join(list, ", ")
	}
	const refused = `403 pods "web" is forbidden: the pod has too many containers to compare with the limits of its namespace`
	wide := limitRange("a", "{type: Container, min: {"+many(1000, "r%d: 1")+"}}")
	for _, row := range []struct{ limits, spec, want string }{
		{wide, containers(199, "{}"), ""},
		{wide, containers(200, "{}"), refused},
		{limitRange("a", many(1000, "{type: Container, default: {r%d: 1}}")), containers(101, "{}"), refused},
		{limitRange("a", "{type: Pod, min: {cpu: 1}}"), "initContainers: [" + many(500, "{restartPolicy: Always, resources: {requests: {r%d: 1}}}") + "]", refused},
		{limitRange("a", "{type: Pod, min: {cpu: 1}}"), "initContainers: [" + many(500, "{restartPolicy: Always, resources: {limits: {r%d: 1}}}") + "]", refused},
		{limitRange("a", "{type: Container, max: {"+many(1000, "r%d: 1")+"}}"), containers(200, "{}"), refused},
		{limitRange("a", "{type: Container, maxLimitRequestRatio: {"+many(1000, "r%d: 1")+"}}"), containers(200, "{}"), refused},
		{limitRange("a", "{type: Container, default: {"+many(1000, "r%d: 1")+"}}"), containers(200, "{}"), refused},
		{limitRange("a", "{type: Container, defaultRequest: {"+many(1000, "r%d: 1")+"}}"), containers(200, "{}"), refused},
	} {
		q := request{object: pod("", row.spec), caller: storing(t, limitRanges, row.limits)}
		if row.want == "" {
			got := p.validate(q)
			if got.Code != 403 || len(got.Message) != 4096 {
				t.Errorf("it says %d %.200s", got.Code, got.Message)
			}
			continue
		}
		p.validate(q).says(t, row.want)
		p.mutate(q).says(t, row.want)
	}
	// As many as that are compared.
	q := request{object: pod("", containers(100, "{}")), caller: storing(t, limitRanges, limitRange("a", "{type: Pod, defaultRequest: {"+many(1999, "r%d: 1")+"}}"))}
	p.mutate(q).is(t, q.object)
	p.validate(q).says(t, "allowed")
	// What many containers violate is told once, and so is what one more does.
	q = request{object: pod("", "containers: ["+many(130, "{name: c%d}")+", {name: d, resources: {requests: {a: 1}}}]"), caller: storing(t, limitRanges, limitRange("a", "{type: Container, min: {a: 2}}"))}
	p.validate(q).says(t, `403 pods "web" is forbidden: [minimum a usage per Container is 2.  No request is specified, minimum a usage per Container is 2, but request is 1]`)
}

// What cannot be decoded has no answer.
func TestLimitRangerUndecodable(t *testing.T) {
	p := configured(t, "LimitRanger", "")
	cluster := storing(t, limitRanges, bounded)
	for _, q := range []request{
		{object: "{spec: 1}"}, {operation: "UPDATE", subresource: "resize", object: pod("", ""), old: "{metadata: {deletionTimestamp: soon}}"},
		{resource: "persistentvolumeclaims", object: "{spec: 1}"}, {resource: "persistentvolumeclaims"},
	} {
		q.caller = cluster
		if got := p.validate(q); got.err == nil {
			t.Errorf("%+v: it says %s", q, got)
		}
	}
}
