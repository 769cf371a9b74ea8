// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// H10 A load compiles the policies that have changed, and forgets what two loads have not
// had.
func TestReloadCompilesWhatHasChanged(t *testing.T) {
	k := NewCompiler(Options{})
	load := func(messages ...string) int {
		var objects manifest.Objects
		for i, message := range messages {
			p := manifest.Policy{Origin: manifest.Origin{Object: fmt.Sprint(i)}}
			p.Name = fmt.Sprintf("p%d", i)
			p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"*"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}}
			p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "true", Message: message}}
			objects.Policies = append(objects.Policies, p)
		}
		before := k.policies.Compiled()
		if _, problems, _ := k.Compile(manifest.Input{Objects: &objects}, nil, nil); len(problems) > 0 {
			t.Fatal(problems)
		}
		return k.policies.Compiled() - before
	}
	if n := load("a", "b", "c"); n != 3 {
		t.Errorf("%d of three were compiled", n)
	}
	if n := load("a", "changed", "c"); n != 1 {
		t.Errorf("%d were compiled after a change of one", n)
	}
	load("a")
	if n := load("a", "b"); n != 1 {
		t.Errorf("what was gone for two loads is kept: %d were compiled", n)
	}
}
