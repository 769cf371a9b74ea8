// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
