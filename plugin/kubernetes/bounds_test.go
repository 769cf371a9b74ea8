// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

// Each plugin that asks the cluster's authorizer says so, and no other: a cluster without a
// kubeconfigFile is refused for it.
func TestAuthorizes(t *testing.T) {
	var got []string
	for _, p := range kubernetes.Plugins(plugin.Plugin{Name: "mine"}) {
		if p.Authorizes {
			got = append(got, p.Name)
		}
	}
	want := []string{"OwnerReferencesPermissionEnforcement", "CertificateApproval", "CertificateSigning", "ClusterTrustBundleAttest", "PodNodeConstraints"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, p := range kubernetes.Plugins() {
		if p.Name == "ClusterTrustBundleAttest" && fmt.Sprint(p.Rules[0].APIVersions) != "[v1 v1beta1 v1alpha1]" {
			t.Errorf("bundles are selected in %v", p.Rules[0].APIVersions)
		}
	}
}

// What a configuration lists may be as many as docs/plugins.md says, and no more.
func TestK21K12BoundsOfConfigurations(t *testing.T) {
	times := func(n int, text string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(text+", ", n), ", ") + "]"
	}
	for name, of := range map[string]struct {
		plugin string
		most   int
		text   func(n int) string
	}{
		"restrictions": {"FieldRestriction", 100, func(n int) string { return "{restrictions: " + times(n, "{name: a, labels: {}}") + "}" }},
		"denied keys":  {"FieldRestriction", 100, func(n int) string { return "{restrictions: [{name: a, labels: {denied: " + times(n, "a") + "}}]}" }},
		"allowed keys": {"FieldRestriction", 100, func(n int) string {
			return "{restrictions: [{name: a, annotations: {allowed: " + times(n, "a") + "}}]}"
		}},
		"taints":            {"FieldRestriction", 100, func(n int) string { return "{restrictions: [{name: a, taints: " + times(n, "{key: a}") + "}]}" }},
		"fields":            {"FieldRestriction", 100, func(n int) string { return "{restrictions: [{name: a, fields: " + times(n, "{path: a}") + "}]}" }},
		"default":           {"PodTolerationRestriction", 500, func(n int) string { return "{default: " + times(n, "{key: a, operator: Exists}") + "}" }},
		"whitelist":         {"PodTolerationRestriction", 500, func(n int) string { return "{whitelist: " + times(n, "{key: a, operator: Exists}") + "}" }},
		"a share of CPU":    {"ClusterResourceOverride", 100, func(n int) string { return fmt.Sprintf("{cpuRequestToLimitPercent: %d}", n) }},
		"a share of memory": {"ClusterResourceOverride", 100, func(n int) string { return fmt.Sprintf("{memoryRequestToLimitPercent: %d}", n) }},
		"a share of CPU, below": {"ClusterResourceOverride", 0, func(n int) string {
			return fmt.Sprintf("{limitCPUToMemoryPercent: 1, cpuRequestToLimitPercent: %d}", -n)
		}},
		"a share of memory, below": {"ClusterResourceOverride", 0, func(n int) string {
			return fmt.Sprintf("{limitCPUToMemoryPercent: 1, memoryRequestToLimitPercent: %d}", -n)
		}},
	} {
		if _, problems := configure(t, of.plugin, of.text(of.most)); problems != "" {
			t.Errorf("%s: %d are refused: %s", name, of.most, problems)
		}
		if _, problems := configure(t, of.plugin, of.text(of.most+1)); problems == "" || strings.Contains(problems, "\n") {
			t.Errorf("%s: %d: %q", name, of.most+1, problems)
		}
	}
}

// A service has at most 1,000 external IPs.
func TestK20BoundOfExternalIPs(t *testing.T) {
	p := configured(t, "ExternalIPRanger", "{externalIPNetworkCIDRs: [0.0.0.0/0]}")
	for n, want := range map[int]bool{1000: true, 1001: false} {
		got := p.validate(request{resource: "services", kind: "Service", object: "{metadata: {name: web}, spec: {externalIPs: [" + strings.Repeat("1.2.3.4, ", n-1) + "1.2.3.4]}}"})
		if got.err != nil || got.Allowed != want {
			t.Errorf("%d: %.200s", n, got)
		}
	}
}

// K21 A toleration of any effect, or a taint of any, is about every effect; two that name
// different ones are not about each other.
func TestK21EffectsOfTaints(t *testing.T) {
	for taint, tolerations := range map[string]map[string]bool{
		"{key: a, effect: NoSchedule}": {"{key: a, operator: Exists}": false, "{key: a, operator: Exists, effect: NoSchedule}": false, "{key: a, operator: Exists, effect: NoExecute}": true},
		"{key: a}":                     {"{key: a, operator: Exists, effect: NoExecute}": false, "{key: b, operator: Exists}": true},
	} {
		for toleration, allowed := range tolerations {
			got := configured(t, "FieldRestriction", "{restrictions: [{name: r, taints: ["+taint+"]}]}").validate(request{object: pod(toleration, "")})
			if got.err != nil || got.Allowed != allowed {
				t.Errorf("%s and %s: %s", taint, toleration, got)
			}
		}
	}
}

// K20 Of the LimitRanges of a namespace the widest bounds count, in whatever order they are.
func TestK20WidestBounds(t *testing.T) {
	p := configured(t, "ClusterResourceOverride", "{cpuRequestToLimitPercent: 50}")
	of := func(resources string) string { return pod("", "containers: [{name: a, resources: "+resources+"}]") }
	for limits, want := range map[string]string{
		"{type: Container, min: {cpu: 3}}, {type: Container, min: {cpu: 2}}, {type: Container, min: {cpu: 4}}":          `"2"`,
		"{type: Container, max: {cpu: 250m}}, {type: Container, max: {cpu: 300m}}, {type: Container, max: {cpu: 200m}}": "300m",
		"{type: Container, max: {cpu: 500m}, min: {cpu: 500m}}":                                                         "500m",
		"{type: Container, max: {memory: 1}, min: {memory: 9Gi}}":                                                       "500m",
	} {
		s := in("")
		s.stored["limitranges"] = "{spec: {limits: [" + limits + "]}}"
		p.mutate(request{object: of("{limits: {cpu: 1}}"), caller: s}).is(t, of("{limits: {cpu: 1}, requests: {cpu: "+want+"}}"))
	}
}

// K18 Only the status of pods of the core group is left alone.
func TestK18StatusOfOthers(t *testing.T) {
	const changed = "{metadata: {name: web, ownerReferences: [{name: a, uid: a}]}}"
	p := configured(t, "OwnerReferencesPermissionEnforcement", "")
	for resource, want := range map[string]string{
		"pods": "allowed", "services": `403 services "web" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`,
	} {
		p.validate(request{operation: "UPDATE", resource: resource, subresource: "status", old: owned(), object: changed, caller: without("*")}).says(t, want)
	}
}
