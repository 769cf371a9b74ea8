// SPDX-License-Identifier: Apache-2.0

package caller

import "k8s.io/apimachinery/pkg/runtime/schema"

// excluded are the virtual resources that kube-apiserver 1.37 sends to no
// webhook: its own list, which it hands to the plugins, is not importable.
var excluded = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}
