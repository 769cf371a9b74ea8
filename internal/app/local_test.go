// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	report "github.com/admission-dispatcher/dispatcher/internal/status"
)

// replicas is a policy with a binding that denies nothing.
const replicas = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]}
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: replicas, validationActions: [Deny]}
`

// Spans and metrics name a policy by its own name and that of the binding, and a plugin by
// the names of the object and of the plugin; a span is called by what it is.
func TestPolicyAndPluginAreNamed(t *testing.T) {
	receiver, r := newReceiver(t, overHTTP), newRig(t)
	r.register()
	r.write("registry/policy.yaml", []byte(replicas))
	r.object("Plugin", "plug", "{plugin: Scripted, configuration: {annotate: pod}}")
	r.start()
	askTraced(t, r.clientOf(r.process.app.Address().String()), sampled)
	eventually(t, "the trace arrives", func() bool { return len(receiver.received(sampledTrace)) == 3 })
	var got []string
	for _, s := range receiver.received(sampledTrace) {
		if name := attributeOf(s, "admission.webhook"); name != "" {
			got = append(got, s.Name+": "+attributeOf(s, "admission.configuration")+" "+name+marks(s))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"plugin Scripted: plug Scripted allowed", "policy everywhere: replicas everywhere allowed"}, got); diff != "" {
		t.Errorf("the spans (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		`dispatcher_webhook_calls_total{configuration="plug",outcome="allowed",phase="validate",webhook="Scripted"} 1.0`,
		`dispatcher_webhook_calls_total{configuration="replicas",outcome="allowed",phase="validate",webhook="everywhere"} 1.0`,
	} {
		r.eventually("the metrics have "+want, func() bool { return strings.Contains(r.process.scrape(), "\n"+want) })
	}
}

// A plugin in mode Shadow is asked and counted, denies nothing and is no fail-open where it
// fails.
func TestPluginInShadow(t *testing.T) {
	r := newRig(t)
	r.object("Plugin", "plug", "{plugin: Scripted, configuration: {deny: never}, mode: Shadow, phases: [Validating]}")
	r.object("Plugin", "broken", "{plugin: Scripted, configuration: {fail: down}, mode: Shadow, phases: [Validating]}")
	r.start()
	for range 2 {
		if got := r.allows(question{}); strings.Contains(got.text, "never") || strings.Contains(got.text, "warnings") {
			t.Errorf("the caller learns of it: %s", got.text)
		}
	}
	counts := func(configuration string) (n report.ShadowCounts) {
		for _, w := range must(r.process.status(http.DefaultClient)).Webhooks {
			if w.Configuration == configuration && w.Mode == "Shadow" && w.Shadow != nil {
				n = *w.Shadow
			}
		}
		return n
	}
	r.eventually("the denials are counted", func() bool { return counts("plug") == report.ShadowCounts{Denied: 2} })
	r.eventually("the failures are counted", func() bool { return counts("broken") == report.ShadowCounts{Failed: 2} })
	scraped := r.process.scrape()
	if want := `dispatcher_shadow_total{configuration="plug",outcome="denied",phase="validate",webhook="Scripted"} 2.0`; !strings.Contains(scraped, want) {
		t.Errorf("the metrics have no %s", want)
	}
	for _, unwanted := range []string{`dispatcher_webhook_calls_total{configuration="plug"`, "dispatcher_fail_open_total{"} {
		if strings.Contains(scraped, unwanted) {
			t.Errorf("the metrics have %s", unwanted)
		}
	}
}
