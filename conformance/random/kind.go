// SPDX-License-Identifier: Apache-2.0

package random

import "k8s.io/apimachinery/pkg/runtime/schema"

// kind is one kind of object, and how it is served.
type kind struct {
	group, version, kind, resource string
	namespaced                     bool
	subresources                   []string
	createOnly                     bool
	body                           map[string]any // besides metadata
}

var kinds = []kind{
	{"", "v1", "Pod", "pods", true, []string{"status", "exec"}, false, podBody},
	{"", "v1", "ConfigMap", "configmaps", true, nil, false, map[string]any{"data": map[string]any{"a/b~c": "1", "plain": "2"}}},
	{"", "v1", "Namespace", "namespaces", false, []string{"status", "finalize"}, false, nil},
	{"", "v1", "Node", "nodes", false, []string{"status"}, false, nil},
	{"apps", "v1", "Deployment", "deployments", true, []string{"status", "scale"}, false, deploymentBody},
	{"coordination.k8s.io", "v1", "Lease", "leases", true, nil, false, nil},
	{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false, nil, false, nil},
	{"example.com", "v1", "Widget", "widgets", true, []string{"status", "scale"}, false, widgetBody},
	{"example.com", "v1beta1", "Gadget", "gadgets", false, []string{"status"}, false, widgetBody},
	{"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false, nil, false, nil},
	{"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false, nil, true, nil},
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
