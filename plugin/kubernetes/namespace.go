// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// namespaces is the resource of which plugins read annotations.
var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// namespaceOf returns the namespace that the request is in, as it is stored; nil: there is
// none.
func namespaceOf(a *plugin.Attributes) (*corev1.Namespace, error) {
	return plugin.Get[corev1.Namespace](a, namespaces, "", a.Namespace())
}
