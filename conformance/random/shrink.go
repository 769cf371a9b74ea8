// SPDX-License-Identifier: Apache-2.0

package random

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// Smaller returns Cases that lack one thing of c each, the largest things first.
func (c *Case) Smaller() []Case {
	var all []Case
	// try adds a copy of c with a change, if the change says that it was one.
	try := func(change func(*Case) bool) {
		if smaller := c.Clone(); change(&smaller) {
			all = append(all, smaller)
		}
	}
	for i := range c.Admissions {
		try(func(c *Case) bool { c.Admissions = slices.Delete(c.Admissions, i, i+1); return len(c.Admissions) > 0 })
	}
	c.eachList(func(of func(*Case) *[]Configuration) {
		for i := range *of(c) {
			try(func(c *Case) bool { return drop(of(c), i) })
		}
	})
	c.eachWebhook(func(of func(*Case) *Configuration, i int) {
		try(func(c *Case) bool { return drop(&of(c).Webhooks, i) && len(of(c).Webhooks) > 0 })
	})
	c.eachWebhook(func(of func(*Case) *Configuration, i int) {
		for _, change := range simpler(&of(c).Webhooks[i]) {
			try(func(c *Case) bool { return change(&of(c).Webhooks[i]) })
		}
	})
	for i := range c.Admissions {
		for _, change := range plainer {
			try(func(c *Case) bool { return change(&c.Admissions[i]) })
		}
	}
	for name := range c.Namespaces {
		try(func(c *Case) bool { return empty(c.Namespaces[name]) })
	}
	return all
}

// Clone returns a copy that shares nothing with c.
func (c *Case) Clone() Case {
	var out Case
	if err := json.Unmarshal(encode(c), &out); err != nil {
		panic(err) // it was encoded a moment ago
	}
	return out
}

func (c *Case) eachList(visit func(of func(*Case) *[]Configuration)) {
	visit(func(c *Case) *[]Configuration { return &c.Mutating })
	visit(func(c *Case) *[]Configuration { return &c.Validating })
}

func (c *Case) eachWebhook(visit func(of func(*Case) *Configuration, i int)) {
	c.eachList(func(of func(*Case) *[]Configuration) {
		for i := range *of(c) {
			for j := range (*of(c))[i].Webhooks {
				visit(func(c *Case) *Configuration { return &(*of(c))[i] }, j)
			}
		}
	})
}

func drop[T any](list *[]T, i int) bool {
	*list = slices.Delete(*list, i, i+1)
	return true
}

// simpler are changes of a webhook like w.
func simpler(w *Webhook) []func(*Webhook) bool {
	changes := []func(*Webhook) bool{
		func(w *Webhook) bool { return empty(w.NamespaceSelector.MatchLabels) },
		func(w *Webhook) bool { return empty(w.ObjectSelector.MatchLabels) },
		func(w *Webhook) bool { return none(&w.Script.Warnings) },
		func(w *Webhook) bool { return empty(w.Script.Annotations) },
		func(w *Webhook) bool { return none(&w.Script.Patch) },
		func(w *Webhook) bool { return replace(&w.Script.Form, "") },
		func(w *Webhook) bool { return replace(&w.Script.Message, "") },
		func(w *Webhook) bool { return replace(&w.Script.Reason, "") },
		func(w *Webhook) bool { return replace(&w.Script.Code, 0) },
		func(w *Webhook) bool { return replace(&w.Script.RetryAfter, 0) },
		func(w *Webhook) bool {
			return len(w.AdmissionReviewVersions) > 1 && oneVersion(&w.AdmissionReviewVersions)
		},
		func(w *Webhook) bool { return replace(w.SideEffects, "None") },
		func(w *Webhook) bool { return replace(w.ReinvocationPolicy, "Never") },
		func(w *Webhook) bool { return replace(w.MatchPolicy, "Exact") },
	}
	for i := range w.Rules {
		changes = append(changes, func(w *Webhook) bool { return len(w.Rules) > 1 && drop(&w.Rules, i) })
	}
	for i := range w.MatchConditions {
		changes = append(changes, func(w *Webhook) bool { return drop(&w.MatchConditions, i) })
	}
	changes = append(changes, fewerExpressions(w, func(w *Webhook) *metav1.LabelSelector { return w.NamespaceSelector })...)
	changes = append(changes, fewerExpressions(w, func(w *Webhook) *metav1.LabelSelector { return w.ObjectSelector })...)
	for i := range operations(&w.Script) {
		changes = append(changes, func(w *Webhook) bool { return dropOperation(&w.Script, i) })
	}
	return changes
}

// oneVersion leaves the review version that is used.
func oneVersion(all *[]string) bool {
	was := len(*all)
	i := slices.IndexFunc(*all, func(version string) bool { return version != unknownVersion })
	*all = (*all)[i : i+1]
	return was > 1
}

func fewerExpressions(w *Webhook, of func(*Webhook) *metav1.LabelSelector) []func(*Webhook) bool {
	var changes []func(*Webhook) bool
	for i := range of(w).MatchExpressions {
		changes = append(changes, func(w *Webhook) bool { return drop(&of(w).MatchExpressions, i) })
	}
	return changes
}

func operations(s *script.Script) []json.RawMessage {
	var list []json.RawMessage
	if s.Patch != nil && json.Unmarshal(s.Patch, &list) != nil {
		return nil
	}
	return list
}

func dropOperation(s *script.Script, i int) bool {
	s.Patch = encode(slices.Delete(operations(s), i, i+1))
	return string(s.Patch) != "[]"
}

// plainer are changes of an admission.
var plainer = []func(*Admission) bool{
	func(a *Admission) bool { return replace(&a.DryRun, false) },
	func(a *Admission) bool { return empty(a.User.Extra) },
	func(a *Admission) bool { return replace(&a.User.UID, "") },
	func(a *Admission) bool { return replace(&a.User.Name, "ann") },
	func(a *Admission) bool { return none(&a.User.Groups) },
	func(a *Admission) bool { return without(&a.Object, "metadata", "labels") },
	func(a *Admission) bool { return without(&a.Object, "metadata", "annotations") },
	func(a *Admission) bool { return without(&a.Object, "spec") },
	func(a *Admission) bool { return without(&a.OldObject, "metadata", "labels") },
	func(a *Admission) bool { return without(&a.OldObject, "metadata", "annotations") },
	func(a *Admission) bool { return without(&a.OldObject, "spec") },
}

// without drops a member of an object's JSON, and tells whether there was one.
func without(object *json.RawMessage, path ...string) bool {
	var tree map[string]any
	if *object == nil || json.Unmarshal(*object, &tree) != nil {
		return false
	}
	parent := tree
	for _, name := range path[:len(path)-1] {
		parent, _ = parent[name].(map[string]any)
	}
	last := path[len(path)-1]
	_, there := parent[last]
	delete(parent, last)
	*object = encode(tree)
	return there
}

// replace sets a field, and tells whether it was something else.
func replace[T comparable](field *T, value T) bool {
	was := *field
	*field = value
	return was != value
}

// none empties a list, and tells whether there was something in it.
func none[T ~[]E, E any](field *T) bool {
	was := len(*field)
	*field = nil
	return was > 0
}

// empty empties a map, and tells whether there was something in it.
func empty[M ~map[K]V, K comparable, V any](m M) bool {
	was := len(m)
	clear(m)
	return was > 0
}
