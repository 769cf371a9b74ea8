// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// apiServer decides as the webhook plugins of kube-apiserver do (ShouldCallHook),
// with their own matcher of rules and registry of equivalents.
type apiServer struct {
	t          *testing.T
	equivalent runtime.EquivalentResourceRegistry
	namespaces map[string]map[string]string // stored labels
	cel        *celenv.Compiler
	compiled   map[string]*match.Matcher // of matchConditions
}

// newAPIServer is one that serves these resources, in this order.
func newAPIServer(t *testing.T, served []schema.GroupVersionResource, namespaces map[string]map[string]string) *apiServer {
	storage := map[schema.GroupResource]string{ // what NewStorageFactoryConfig makes cohabit
		{Group: "", Resource: "events"}: "/events", {Group: "events.k8s.io", Resource: "events"}: "/events",
		{Group: "apps", Resource: "deployments"}: "/deployments", {Group: "extensions", Resource: "deployments"}: "/deployments",
	}
	a := &apiServer{
		t: t, namespaces: namespaces, cel: celenv.NewCompiler(), compiled: map[string]*match.Matcher{},
		equivalent: runtime.NewEquivalentResourceRegistryWithIdentity(func(r schema.GroupResource) string { return storage[r] }),
	}
	for _, r := range served {
		for _, sub := range []string{"", "status", "scale"} {
			a.equivalent.RegisterKindFor(r, sub, r.GroupVersion().WithKind("K"))
		}
	}
	return a
}

// sent is a request as a user sends it.
type sent struct {
	operation codec.Operation
	resource  schema.GroupVersionResource
	sub       string
	namespace string            // request.namespace
	name      string            // empty: generateName
	labels    map[string]string // of the object; nil: there is none
	old       map[string]string // of the old object
	user      codec.UserInfo
}

// wanted is what a configuration says of a webhook.
type wanted struct {
	rules       []admissionregistrationv1.RuleWithOperations
	matchPolicy admissionregistrationv1.MatchPolicyType
	namespaces  *metav1.LabelSelector
	objects     *metav1.LabelSelector
	conditions  []admissionregistrationv1.MatchCondition
}

// calls returns the form in which the hook is called.
func (a *apiServer) calls(h wanted, q *sent) (form schema.GroupVersionResource, ok bool) {
	a.t.Helper()
	if form, ok = a.selects(h, q); !ok || !a.inNamespace(h.namespaces, q) || !a.hasLabels(h.objects, q) {
		return form, false
	}
	return form, a.conditionsHold(h.conditions, q)
}

// selects is what rules and matchPolicy say.
func (a *apiServer) selects(h wanted, q *sent) (schema.GroupVersionResource, bool) {
	for _, r := range h.rules {
		if matches(r, q, q.resource) {
			return q.resource, true
		}
	}
	if h.matchPolicy != admissionregistrationv1.Equivalent {
		return schema.GroupVersionResource{}, false
	}
	for _, r := range h.rules {
		for _, e := range a.equivalent.EquivalentResourcesFor(q.resource, q.sub) {
			if e != q.resource && matches(r, q, e) {
				return e, true
			}
		}
	}
	return schema.GroupVersionResource{}, false
}

func matches(r admissionregistrationv1.RuleWithOperations, q *sent, as schema.GroupVersionResource) bool {
	m := rules.Matcher{Rule: r, Attr: admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, q.namespace, q.name, as, q.sub,
		admission.Operation(q.operation.String()), nil, false, nil)}
	return m.Matches()
}

// inNamespace is predicates/namespace: cluster-scoped objects pass, Namespaces go
// by labels of their own.
func (a *apiServer) inNamespace(s *metav1.LabelSelector, q *sent) bool {
	itself := q.resource.Resource == "namespaces"
	if q.namespace == "" && !itself {
		return true
	}
	if itself && q.sub == "" && (q.operation == codec.Create || q.operation == codec.Update) {
		return a.selector(s).Matches(labels.Set(q.labels))
	}
	return a.selector(s).Matches(labels.Set(a.namespaces[q.namespace]))
}

func (a *apiServer) hasLabels(s *metav1.LabelSelector, q *sent) bool {
	selector := a.selector(s)
	return selector.Empty() || q.labels != nil && selector.Matches(labels.Set(q.labels)) || q.old != nil && selector.Matches(labels.Set(q.old))
}

func (a *apiServer) selector(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		a.t.Fatal(err)
	}
	return selector
}

// conditionsHold evaluates matchConditions: in the API server, request.resource is
// the resource as sent. None may fail.
func (a *apiServer) conditionsHold(conditions []admissionregistrationv1.MatchCondition, q *sent) bool {
	a.t.Helper()
	for _, c := range conditions {
		m := a.compiled[c.Expression]
		if m == nil {
			var err error
			if m, err = match.Compile(match.Spec{
				Rules:           []admissionregistrationv1.RuleWithOperations{anything()},
				FailurePolicy:   admissionregistrationv1.Fail,
				MatchConditions: []admissionregistrationv1.MatchCondition{c},
			}, a.cel); err != nil {
				a.t.Fatal(err)
			}
			a.compiled[c.Expression] = m
		}
		d := m.Match(a.subject(q, q.resource))
		if d.Err != nil {
			a.t.Fatalf("%s fails: %v", c.Expression, d.Err)
		}
		if d.Reason != match.Matched {
			return false
		}
	}
	return true
}

func anything() admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	}
}

// subject is the request as a dispatcher gets it, in a form.
func (a *apiServer) subject(q *sent, form schema.GroupVersionResource) *match.Subject {
	a.t.Helper()
	named := func(r schema.GroupVersionResource) codec.GroupVersionResource {
		return codec.GroupVersionResource{Group: []byte(r.Group), Version: []byte(r.Version), Resource: []byte(r.Resource)}
	}
	r := &codec.Review{
		Operation: q.operation, Resource: named(form), SubResource: []byte(q.sub),
		RequestResource: named(q.resource), RequestSubResource: []byte(q.sub),
		Namespace: []byte(q.namespace), Name: []byte(q.name), User: q.user,
		Object: a.object(q.labels, q.name), OldObject: a.object(q.old, q.name),
	}
	return &match.Subject{View: hook.NewView(hook.Source{Review: r}), Namespaces: a}
}

func (a *apiServer) object(with map[string]string, name string) codec.Object {
	a.t.Helper()
	var o codec.Object
	if with == nil {
		return o
	}
	text := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{`, name)
	for i, key := range slices.Sorted(maps.Keys(with)) {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("%q:%q", key, with[key])
	}
	text += "}}}"
	if err := codec.ScanObject(&o, []byte(text)); err != nil {
		a.t.Fatal(err)
	}
	return o
}

// NamespaceLabels implements match.Namespaces.
func (a *apiServer) NamespaceLabels(name string) (map[string]string, error) {
	stored, ok := a.namespaces[name]
	if !ok {
		return nil, match.ErrNoNamespace
	}
	return stored, nil
}
