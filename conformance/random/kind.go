// SPDX-License-Identifier: Apache-2.0

package random

import "k8s.io/apimachinery/pkg/runtime/schema"

// kind is one kind of object, and how it is served.
type kind struct {
	group, version, kind, resource string
	namespaced                     bool
	subresources                   []string
	createOnly                     bool
	body                           map[string]any        // besides metadata
	also                           []schema.GroupVersion // in which the same objects are served
}

var kinds = []kind{
	{"", "v1", "Pod", "pods", true, []string{"status", "exec"}, false, podBody, nil},
	{"", "v1", "ConfigMap", "configmaps", true, nil, false, map[string]any{"data": map[string]any{"a/b~c": "1", "plain": "2"}}, nil},
	{"", "v1", "Namespace", "namespaces", false, []string{"status", "finalize"}, false, nil, nil},
	{"", "v1", "Node", "nodes", false, []string{"status"}, false, nil, nil},
	{"apps", "v1", "Deployment", "deployments", true, []string{"status", "scale"}, false, deploymentBody, nil},
	{"coordination.k8s.io", "v1", "Lease", "leases", true, nil, false, nil, nil},
	{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false, nil, false, nil, nil},
	{"example.com", "v1", "Widget", "widgets", true, []string{"status", "scale"}, false, widgetBody,
		[]schema.GroupVersion{{Group: "example.com", Version: "v1beta1"}, {Group: "example.com", Version: "v2"}}},
	{"example.com", "v1beta1", "Gadget", "gadgets", false, []string{"status"}, false, widgetBody, nil},
	{"", "v1", "Event", "events", true, nil, false, map[string]any{"reason": "Tested"}, []schema.GroupVersion{{Group: "events.k8s.io", Version: "v1"}}},
	{"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false, nil, false, nil, nil},
	{"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false, nil, true, nil, nil},
}

// Converted is a kind whose objects are served in several forms, between which the
// API server converts them.
type Converted struct {
	Kind, Resource string
	Subresources   []string
	Forms          []schema.GroupVersion
}

// AllConverted returns the kinds that have several forms.
func AllConverted() []Converted {
	var all []Converted
	for _, k := range kinds {
		if len(k.also) > 0 {
			all = append(all, Converted{k.kind, k.resource, k.subresources, k.forms()})
		}
	}
	return all
}

// FormField is where an object of such a kind says in which form it is.
const FormField = "form"

func (k kind) forms() []schema.GroupVersion {
	return append([]schema.GroupVersion{{Group: k.group, Version: k.version}}, k.also...)
}

// inAForm returns the kind as one of its forms.
func (w *writer) inAForm(k kind) kind {
	if len(k.also) > 0 {
		form := pick(w.source, k.forms()...)
		k.group, k.version = form.Group, form.Version
	}
	return k
}

var podBody = map[string]any{"spec": map[string]any{
	"containers": []any{
		map[string]any{"name": "one", "image": "registry.example.com/one:1", "resources": map[string]any{}},
		map[string]any{"name": "two", "image": "registry.example.com/two:2", "resources": map[string]any{}},
	},
}}

var deploymentBody = map[string]any{"spec": map[string]any{
	"replicas": 2,
	"selector": map[string]any{"matchLabels": map[string]any{"tier": "a"}},
	"strategy": map[string]any{},
	"template": map[string]any{"metadata": map[string]any{}, "spec": podBody["spec"]},
}}

var widgetBody = map[string]any{"spec": map[string]any{
	"size":  3,
	"ratio": 0.25,
	"parts": []any{"x", "y", "z"},
	"a/b":   map[string]any{"m~n": nil, "": true},
	"text":  "<é☃>",
}}

func (k kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
}

func (k kind) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.resource}
}

// subject is the kind of the object that a request on a subresource carries.
func (k kind) subject(subresource string) schema.GroupVersionKind {
	switch subresource {
	case "scale":
		return schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	case "exec":
		return schema.GroupVersionKind{Version: "v1", Kind: "PodExecOptions"}
	}
	return k.gvk()
}
