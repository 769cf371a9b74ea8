// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// endless are quantities that take minutes to be compared with others, or added to them.
func endless() []string { return []string{"1e999999999", "-1e999999999", "3E1000000000"} }

// K12 A quantity that has no room in an int64 is denied where there are limits, not compared:
// its value would be 0. One that takes minutes to compute with is denied at once.
func TestK12LimitRangerDeniesWhatItCannotCompare(t *testing.T) {
	const tooLarge = "a quantity is too large to be compared with the limits of its namespace"
	p := configured(t, "LimitRanger", "")
	cluster := storing(t, limitRanges, limitRange("a", "{type: Container, max: {memory: 1Gi}}", "{type: Pod, max: {memory: 2Gi}}", "{type: PersistentVolumeClaim, max: {storage: 1Gi}}"))
	free := storing(t, limitRanges)
	for _, q := range append(endless(), "'1e20'", "'1e64'", "100E", "9223372036854775808", "-1e20") {
		for _, spec := range []string{
			containers(1, "{limits: {memory: "+q+"}}"), containers(1, "{requests: {cpu: "+q+"}, limits: {memory: 1}}"), containers(1, "{}", "{limits: {memory: "+q+"}}"),
			containers(1, "{limits: {memory: 1}}") + ", resources: {limits: {memory: " + q + "}}", containers(1, "{limits: {memory: 1}}") + ", resources: {requests: {memory: " + q + "}}",
		} {
			r := request{object: pod("", spec), caller: cluster}
			p.validate(r).says(t, `403 pods "web" is forbidden: `+tooLarge)
			p.mutate(r).says(t, `403 pods "web" is forbidden: `+tooLarge)
			r.caller = free
			p.validate(r).says(t, "allowed")
			p.mutate(r).says(t, "allowed")
		}
		claim := request{resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim", object: "{spec: {resources: {requests: {storage: " + q + "}}}}", caller: cluster}
		p.validate(claim).says(t, `403 persistentvolumeclaims "web" is forbidden: `+tooLarge)
		claim.caller = free
		p.validate(claim).says(t, "allowed")
	}
	// What has room may have none as a sum.
	sum := request{object: pod("", containers(2, "{limits: {memory: 9e18}, requests: {memory: 9e18}}")), caller: storing(t, limitRanges, limitRange("a", "{type: Pod, max: {memory: 2Gi}}"))}
	p.validate(sum).says(t, `403 pods "web" is forbidden: `+tooLarge)
	most := request{object: pod("", containers(1, "{limits: {memory: 9223372036854775807}}")), caller: storing(t, limitRanges, limitRange("a", "{type: Container, max: {memory: 7Ei}}"))}
	p.validate(most).says(t, `403 pods "web" is forbidden: maximum memory usage per Container is 7Ei, but limit is 9223372036854775807`)
}

// K12 Other plugins take them for what they are: another overhead, more storage, no bounds.
func TestK12EndlessQuantities(t *testing.T) {
	classes := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	runtime, resize := configured(t, "RuntimeClass", ""), configured(t, "PersistentVolumeClaimResize", "")
	override := configured(t, "ClusterResourceOverride", "{limitCPUToMemoryPercent: 100, cpuRequestToLimitPercent: 50, memoryRequestToLimitPercent: 50}")
	const other = `403 pods "web" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`
	for _, q := range endless() {
		for _, overheads := range [][2]string{{"1", q}, {q, "1"}, {q, q}} {
			r := request{object: pod("", "runtimeClassName: kata, overhead: {cpu: "+overheads[0]+"}"),
				caller: storing(t, runtimeClasses, "{metadata: {name: kata}, handler: h, overhead: {podFixed: {cpu: "+overheads[1]+"}}}")}
			runtime.mutate(r).says(t, other)
			runtime.validate(r).says(t, other)
		}
		claim := func(size string) string {
			return "{metadata: {name: web}, spec: {storageClassName: silver, resources: {requests: {storage: " + size + "}}}, status: {phase: Bound}}"
		}
		r := request{operation: "UPDATE", resource: "persistentvolumeclaims", object: claim(q), old: claim("1Gi"), caller: storing(t, classes, "{metadata: {name: silver}}")}
		resize.validate(r).says(t, `403 persistentvolumeclaims "web" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`)
		r.old = r.object
		resize.validate(r).says(t, "allowed")

		bounded := in("")
		bounded.stored["limitranges"] = fmt.Sprintf("{spec: {limits: [{type: Container, min: {cpu: %[1]s, memory: %[1]s}, max: {cpu: %[1]s, memory: %[1]s}}, {type: Container, min: {cpu: 2m, memory: 2Mi}}]}}", q)
		override.mutate(request{object: pod("", "containers: [{name: a, resources: {requests: {cpu: "+q+", memory: "+q+"}, limits: {memory: 1Gi, cpu: "+q+"}}}]"), caller: bounded}).is(t,
			pod("", `containers: [{name: a, resources: {requests: {cpu: 500m, memory: 512Mi}, limits: {memory: 1Gi, cpu: "1"}}}]`))
		got := override.mutate(request{object: pod("", "containers: [{name: a, resources: {limits: {memory: "+q+"}}}]"), caller: bounded})
		if !got.Allowed {
			t.Errorf("%s: %s", q, got)
		}
	}
}

// K12 What a cluster stores may have quantities that take long to decode, too: no answer.
func TestK12SlowQuantitiesOfACluster(t *testing.T) {
	slow := storing(t, limitRanges, limitRange("a", `{type: Container, max: {memory: "1e-1000000000"}}`))
	got := configured(t, "LimitRanger", "").validate(request{object: pod("", "containers: [{name: a}]"), caller: slow}).String()
	if !strings.HasSuffix(got, "the object cannot be decoded as v1.LimitRange: a quantity is too small or too long") {
		t.Error(got)
	}
}
