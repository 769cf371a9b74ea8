// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// request is any request: most are those of admission, and all others have something about
// them by which a policy could be evaded: a subresource, no name yet, no namespace, an object
// that nobody stores, a namespace as the object.
func (g *policySource) request() *policyAdmission {
	a := g.admission()
	switch g.IntN(12) {
	case 0: // a name that is not made yet
		if pod, ok := a.New.(*corev1.Pod); ok && a.Operation == admission.Create {
			a.Name, pod.Name, pod.GenerateName = "", "", "web-"
		}
	case 1, 2:
		a.Subresource = g.one("status", "resize", "ephemeralcontainers", "unknown")
		if a.Operation != admission.Update {
			a = g.connection(a)
		}
	case 3:
		a = g.connection(a)
	case 4, 5:
		a = g.namespaceRequest(a)
	case 6:
		a.Kind, a.Resource, a.Namespace = corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithResource("nodes"), ""
		a.replace(func(pod *corev1.Pod) runtime.Object {
			return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Labels: pod.Labels}}
		})
	}
	return a
}

// connection is a CONNECT, whose object are its options.
func (g *policySource) connection(a *policyAdmission) *policyAdmission {
	a.Kind, a.Subresource, a.Operation = corev1.SchemeGroupVersion.WithKind("PodExecOptions"), "exec", admission.Connect
	a.Old, a.New = nil, &corev1.PodExecOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodExecOptions"}, Command: []string{"sh"}, Container: g.one("", "c0"), Stdin: g.some(50)}
	return a
}

// namespaceRequest is about a namespace, which has other labels than it is stored with.
func (g *policySource) namespaceRequest(a *policyAdmission) *policyAdmission {
	a.Kind, a.Resource = corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithResource("namespaces")
	a.Name = g.one("shop", "bank", "default", "new")
	if a.Operation == admission.Delete && a.Name == "new" {
		a.Name = "shop"
	}
	a.Namespace = a.Name
	if a.Operation == admission.Update && g.some(30) {
		a.Subresource = g.one("status", "finalize")
		if a.Name == "new" {
			a.Name, a.Namespace = "bank", "bank"
		}
	}
	a.replace(func(pod *corev1.Pod) runtime.Object {
		ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: a.Name, Labels: map[string]string{corev1.LabelMetadataName: a.Name}}}
		for _, key := range []string{"team", "tier", "app"} {
			if g.some(40) {
				ns.Labels[key] = g.one("a", "b", "gold", "web")
			}
		}
		return ns
	})
	return a
}

// replace makes other objects of the pods.
func (a *policyAdmission) replace(of func(*corev1.Pod) runtime.Object) {
	for _, o := range []*runtime.Object{&a.Old, &a.New} {
		if pod, ok := (*o).(*corev1.Pod); ok {
			*o = of(pod)
		}
	}
}
