// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"runtime"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// manyPolicies are n policies with a binding each, of four expressions of which none is
// another policy's: a variable, two validations and a message.
func manyPolicies(n int) *manifest.Objects {
	o := &manifest.Objects{Clusters: []manifest.Cluster{clusterNamed("east", "prod")}}
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		p := manifest.Policy{Origin: manifest.Origin{File: "f", Object: "ValidatingAdmissionPolicy/" + name}}
		p.Name = name
		p.Spec.FailurePolicy = new(admissionregistrationv1.Fail)
		p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
			MatchPolicy: new(admissionregistrationv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: new(admissionregistrationv1.AllScopes)},
			}}},
		}
		p.Spec.Variables = []admissionregistrationv1.Variable{{Name: "images", Expression: fmt.Sprintf("object.spec.containers.map(c, c.image + '%d')", i)}}
		p.Spec.Validations = []admissionregistrationv1.Validation{
			{Expression: fmt.Sprintf("variables.images.all(i, i.startsWith('registry-%d.example.com/'))", i), MessageExpression: fmt.Sprintf("'not of registry %d: ' + variables.images.join(', ')", i)},
			{Expression: fmt.Sprintf("!('exempt-%d' in object.metadata.?labels.orValue({}))", i)},
		}
		o.Policies = append(o.Policies, p)
		b := manifest.PolicyBinding{Origin: manifest.Origin{File: "f", Object: "ValidatingAdmissionPolicyBinding/" + name}}
		b.Name, b.Spec.PolicyName = name, name
		b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Deny"}
		o.PolicyBindings = append(o.PolicyBindings, b)
	}
	return o
}

// BenchmarkPolicies is a reload that changes one of 500 policies, and what all of them
// hold.
func BenchmarkPolicies(b *testing.B) {
	c := NewCompiler(Options{})
	if _, problems, _ := c.Compile(manifest.Input{Objects: manyPolicies(1)}, nil, nil); len(problems) > 0 {
		b.Fatal(problems) // and what is made for the first one is there
	}
	o := manyPolicies(500)
	before := heap()
	s, problems, _ := c.Compile(manifest.Input{Objects: o}, nil, nil)
	if len(problems) > 0 {
		b.Fatal(problems[0])
	}
	held, first, changes := heap()-before, c.policies.Compiled(), 0
	for b.Loop() {
		changes++
		o.Policies[7].Spec.Validations[1].Message = fmt.Sprint("changed ", changes)
		if s, problems, _ = c.Compile(manifest.Input{Objects: o}, nil, nil); len(problems) > 0 {
			b.Fatal(problems[0])
		}
	}
	b.ReportMetric(float64(held)/(1<<20), "MiB-held")
	b.ReportMetric(float64(c.policies.Compiled()-first)/float64(changes), "compiled/op")
	runtime.KeepAlive(s)
}
