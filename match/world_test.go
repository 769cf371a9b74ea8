// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// reviewOf is a review of an operation on a resource: "group/version/resource" or
// "group/version/resource/subresource".
func reviewOf(operation codec.Operation, group, version, resource, sub, namespace string) *codec.Review {
	r := &codec.Review{
		Operation:   operation,
		Resource:    resourceOf(group, version, resource),
		SubResource: []byte(sub),
		Namespace:   []byte(namespace),
		Name:        []byte("it"),
	}
	r.RequestResource, r.RequestSubResource = r.Resource, r.SubResource
	return r
}

func resourceOf(group, version, resource string) codec.GroupVersionResource {
	return codec.GroupVersionResource{Group: []byte(group), Version: []byte(version), Resource: []byte(resource)}
}

// objectOf is an object as a review has it.
func objectOf(t testing.TB, json string) codec.Object {
	t.Helper()
	var o codec.Object
	if err := codec.ScanObject(&o, []byte(json)); err != nil {
		t.Fatal(err)
	}
	return o
}

func subjectOf(r *codec.Review) *match.Subject {
	return &match.Subject{View: hook.NewView(sourceOf(r))}
}

func sourceOf(r *codec.Review) hook.Source {
	return hook.Source{Review: r, Cluster: "east", ClusterLabels: map[string]string{"env": "prod"}}
}

func rule(groups, versions, resources string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	if len(operations) == 0 {
		operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{groups}, APIVersions: []string{versions}, Resources: []string{resources},
		},
	}
}

func scoped(r admissionregistrationv1.RuleWithOperations, scope admissionregistrationv1.ScopeType) admissionregistrationv1.RuleWithOperations {
	r.Scope = &scope
	return r
}

// everything is a Spec that wants every review.
func everything() match.Spec {
	return match.Spec{
		Rules:         []admissionregistrationv1.RuleWithOperations{rule("*", "*", "*/*")},
		MatchPolicy:   admissionregistrationv1.Equivalent,
		FailurePolicy: admissionregistrationv1.Fail,
	}
}

func compile(t testing.TB, spec match.Spec) *match.Matcher {
	t.Helper()
	m, err := match.Compile(spec, celenv.NewCompiler())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func expect(t *testing.T, m *match.Matcher, s *match.Subject, want match.Reason) match.Decision {
	t.Helper()
	d := m.Match(s)
	if d.Reason != want {
		t.Errorf("got %v (%v), want %v", d.Reason, d.Err, want)
	}
	return d
}

func labelSelector(op metav1.LabelSelectorOperator, key string, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

// listed are namespaces with their labels; what is not there is unknown.
type listed map[string]map[string]string

func (l listed) NamespaceLabels(name string) (map[string]string, error) {
	labels, ok := l[name]
	if !ok {
		return nil, match.ErrNoNamespace
	}
	return labels, nil
}
