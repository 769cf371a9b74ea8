// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// DefaultIngressClass gives Ingresses that name no class the cluster's default IngressClass.
func DefaultIngressClass() plugin.Plugin {
	p := unconfigured("DefaultIngressClass", ingressClass{}, plugin.Rule(networkingv1.GroupName, "v1", []string{"ingresses"}, "CREATE"))
	p.Lists = append(p.Lists, ingressClasses)
	return p
}

var ingressClasses = networkingv1.SchemeGroupVersion.WithResource("ingressclasses")

// oldIngressClassAnnotation named the class before the field did.
const oldIngressClassAnnotation = "kubernetes.io/ingress.class"

type ingressClass struct{}

func (ingressClass) Mutate(_ context.Context, a *plugin.Attributes) (answer plugin.Answer, err error) {
	if !a.Is(networkingv1.GroupName, "ingresses") || a.Operation() != admissionv1.Create {
		return answer, nil
	}
	ingress, err := plugin.Decode[networkingv1.Ingress](a.Object())
	if err != nil {
		return answer, err
	}
	if ingress == nil {
		return answer, missing("Ingress")
	}
	if _, named := ingress.Annotations[oldIngressClassAnnotation]; named || ingress.Spec.IngressClassName != nil {
		return answer, nil
	}
	classes, err := plugin.List[networkingv1.IngressClass](a, ingressClasses, "")
	if err != nil {
		return answer, err
	}
	if newest, ok := newestDefault(classes, networkingv1.AnnotationIsDefaultIngressClass); ok {
		answer.Patch = append(answer.Patch, plugin.Add(newest.Name, "spec", "ingressClassName"))
	}
	return answer, nil
}
