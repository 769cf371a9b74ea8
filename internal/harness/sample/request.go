// SPDX-License-Identifier: Apache-2.0

package sample

import (
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is what a controller is asked about, and what its cluster has.
type Request struct {
	Configuration string // of the controller, in YAML
	Stored        []runtime.Object

	Operation                    admissionv1.Operation
	Resource                     schema.GroupVersionResource
	Kind                         string
	Subresource, Namespace, Name string
	Object, Old                  runtime.Object
}

func (q *Request) store(o runtime.Object, kind string) {
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	q.Stored = append(q.Stored, o)
}
