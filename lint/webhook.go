// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

// webhook is one webhook of a configuration, with a Matcher for each of its rules.
type webhook struct {
	*admissionregistrationv1.MutatingWebhook
	of                   *Configuration
	configuration, index int
	at                   *field.Path
	ours                 bool // an entry of a registration of the dispatcher
	neutral              bool // never called: see Neutralised
	fails                bool // closed
	matchers             []*match.Matcher
}

// OwnSuffix ends the names of the dispatcher's own entries.
const OwnSuffix = ".admission-dispatcher.dispatcher.dev"

func (l *linter) webhook(configuration, index int) *webhook {
	of := &l.Configurations[configuration]
	w := &webhook{MutatingWebhook: &of.Webhooks[index], of: of, configuration: configuration, index: index, at: field.NewPath("webhooks").Index(index)}
	w.ours, w.neutral = strings.HasSuffix(w.Name, OwnSuffix), Neutralised(w.MutatingWebhook)
	w.fails = or(w.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail
	for _, rule := range w.Rules {
		// Exact: a rule that names an old version of what is vital is found by its names.
		m, err := match.Compile(match.Spec{
			Rules:             []admissionregistrationv1.RuleWithOperations{withScope(rule)},
			MatchPolicy:       admissionregistrationv1.Exact,
			FailurePolicy:     or(w.FailurePolicy, admissionregistrationv1.Fail),
			NamespaceSelector: orEmpty(w.NamespaceSelector),
			ObjectSelector:    orEmpty(w.ObjectSelector),
			MatchConditions:   w.MatchConditions,
		}, l.Compiler)
		if err != nil {
			m = nil // no API server takes it
		}
		w.matchers = append(w.matchers, m)
	}
	return w
}

// DispatchedCondition is the name of the matchCondition by which the owner of a webhook
// leaves its calls to the dispatcher.
const DispatchedCondition = "dispatched"

// Neutralised reports whether the API server never calls the webhook, because a
// matchCondition is false.
func Neutralised(w *admissionregistrationv1.MutatingWebhook) bool {
	return slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
		return strings.TrimSpace(c.Expression) == "false"
	})
}

// or is what p points to, or the default of the API.
func or[T any](p *T, byDefault T) T {
	if p == nil {
		return byDefault
	}
	return *p
}

func orEmpty(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

func withScope(r admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	if r.Scope == nil {
		r.Scope = new(admissionregistrationv1.AllScopes)
	}
	return r
}

// wants reports whether the webhook would be called for the request by its rule i. A
// condition that cannot be evaluated counts as one that holds: under Fail it is a denial.
func (w *webhook) wants(i int, x *witness) bool {
	if w.matchers[i] == nil {
		return false
	}
	d := w.matchers[i].Match(x.subject)
	return d.Reason == match.Matched || d.Err != nil && w.fails
}

// wanted reports whether any rule wants the request.
func (w *webhook) wanted(l *linter, q request, labels map[string]string) bool {
	for i := range w.Rules {
		if w.wants(i, l.witness(q, version(&w.Rules[i]), labels)) {
			return true
		}
	}
	return false
}

// version is one that the rule selects.
func version(r *admissionregistrationv1.RuleWithOperations) string {
	if len(r.APIVersions) == 0 || r.APIVersions[0] == "*" {
		return "v1"
	}
	return r.APIVersions[0]
}

// IsWide reports whether the rule selects every resource of every group.
func IsWide(r *admissionregistrationv1.RuleWithOperations) bool {
	return slices.Contains(r.APIGroups, "*") && (slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "*/*"))
}

// example is a request in a namespace that the rule selects, if its resources are
// namespaced, by the control plane.
func example(r *admissionregistrationv1.RuleWithOperations, namespace string) (q request, ok bool) {
	if len(r.APIGroups) == 0 || len(r.Resources) == 0 || len(r.Operations) == 0 || or(r.Scope, admissionregistrationv1.AllScopes) == admissionregistrationv1.ClusterScope {
		return request{}, false
	}
	q = request{group: r.APIGroups[0], namespace: namespace, name: "x", kind: "Example", operation: codec.Create, user: controller.user, groups: controller.groups}
	if q.group == "*" {
		q.group = "example.com"
	}
	resource := r.Resources[0]
	for _, other := range r.Resources { // a resource is a better example than its status
		if !strings.Contains(other, "/") {
			resource = other
			break
		}
	}
	q.resource, q.sub = split(resource)
	q.resource, q.sub = strings.ReplaceAll(q.resource, "*", "examples"), strings.TrimPrefix(q.sub, "*")
	for _, cluster := range clusterScoped() {
		if q.resource == cluster {
			return request{}, false
		}
	}
	if !slices.ContainsFunc(r.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.OperationAll || o == admissionregistrationv1.Create
	}) {
		q.operation = operation(r.Operations[0])
	}
	return q, true
}

// clusterScoped are resources of which a rule without a scope names no namespaced one.
func clusterScoped() []string {
	var all []string
	for _, q := range vitalRequests() {
		if q.namespace == "" || q.resource == "namespaces" {
			all = append(all, q.resource)
		}
	}
	return append(all, "persistentvolumes", "storageclasses", "csinodes", "csidrivers", "volumeattachments", "runtimeclasses", "ingressclasses", "flowschemas", "prioritylevelconfigurations")
}

func operation(o admissionregistrationv1.OperationType) codec.Operation {
	switch o {
	case admissionregistrationv1.Update:
		return codec.Update
	case admissionregistrationv1.Delete:
		return codec.Delete
	case admissionregistrationv1.Connect:
		return codec.Connect
	}
	return codec.Create
}

func split(resource string) (name, sub string) {
	name, sub, _ = strings.Cut(resource, "/")
	return name, sub
}

func encode(object any) []byte {
	text, _ := json.Marshal(object) // of plain structs, which always encode
	return text
}
