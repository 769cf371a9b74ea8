// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// decided is what is in the process, allows, and is ignored where it cannot: whatever
// comes of the others, it is said that it was not heard.
func decided(name string) []history.Webhook {
	return []history.Webhook{{Name: name, Phase: history.Validating, Order: -1, FailurePolicy: history.Ignore, SideEffects: history.NoSideEffects,
		Timeout: 2 * time.Second, Truth: func(string) history.Answer { return history.Answer{Allowed: true} }}}
}

const pluginObject = `apiVersion: dispatcher.dev/v1alpha1
kind: Plugin
metadata: {name: admit}
spec: {plugin: AlwaysAdmit, phases: [Validating], failurePolicy: Ignore, timeout: %s}
`

// inPlugin is a dispatcher whose plugin AlwaysAdmit does something else.
func inPlugin(statement string) *mutant {
	const validate = "func (admit) Validate(context.Context, *plugin.Attributes) (plugin.Answer, error) {\n"
	return &mutant{file: "plugin/kubernetes/admit.go", old: validate, new: validate + "	" + statement + "\n"}
}

// costlyPolicy has an expression of 1,120,000 units of cost, where an expression may have
// 1,000,000: to a processor it is next to nothing.
var costlyPolicy = func() string {
	dear := fmt.Sprintf("!'%s'.contains('%s')", strings.Repeat("a", 80_000), strings.Repeat("z", 1_400))
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: dear}
spec:
  failurePolicy: Ignore
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]}
  validations: [{expression: "%s"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: costly}
spec: {policyName: dear, validationActions: [Deny]}
`, dear)
}()

// hangsInFew: when a plugin hangs in as many calls as it may, further ones fail at once.
func hangsInFew(t *findings, _ *world, rec *record) {
	hang, shed := 0, 0
	for i := range rec.calls {
		switch text := rec.calls[i].Annotations["dispatcher.dev.failed-open"]; {
		case strings.Contains(text, "AlwaysAdmit (Timeout"):
			hang++
		case strings.Contains(text, "AlwaysAdmit (Shed"):
			shed++
		}
	}
	if hang == 0 || hang > 256 || shed == 0 {
		t.Errorf("a plugin hangs in %d calls, of which there may be 256, and %d are shed", hang, shed)
	}
}
