// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// DefaultStorageClass gives claims that name no class the cluster's default StorageClass.
func DefaultStorageClass() plugin.Plugin {
	p := unconfigured("DefaultStorageClass", storageClass{}, created("persistentvolumeclaims")...)
	p.Lists = append(p.Lists, storageClasses)
	return p
}

// storageClasses is the resource of which plugins read which class is the default, and which
// allows volumes to grow.
var storageClasses = storagev1.SchemeGroupVersion.WithResource("storageclasses")

type storageClass struct{}

func (storageClass) Mutate(_ context.Context, a *plugin.Attributes) (answer plugin.Answer, err error) {
	if !a.Is("", "persistentvolumeclaims") || a.Operation() != admissionv1.Create {
		return answer, nil
	}
	claim, err := plugin.Decode[corev1.PersistentVolumeClaim](a.Object())
	if err != nil {
		return answer, err
	}
	if claim == nil {
		return answer, missing("PersistentVolumeClaim")
	}
	if _, named := claim.Annotations[corev1.BetaStorageClassAnnotation]; named || claim.Spec.StorageClassName != nil {
		return answer, nil
	}
	classes, err := plugin.List[storagev1.StorageClass](a, storageClasses, "")
	if err != nil {
		return answer, err
	}
	if newest, ok := newestDefault(classes, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"); ok {
		answer.Patch = append(answer.Patch, plugin.Add(newest.Name, "spec", "storageClassName"))
	}
	return answer, nil
}

// newestDefault returns the newest of the classes that one of the annotations makes the
// default, and of equally new ones the first.
func newestDefault[C metav1.Object](classes []C, annotations ...string) (newest C, ok bool) {
	for _, class := range classes {
		marked := slices.ContainsFunc(annotations, func(key string) bool { return class.GetAnnotations()[key] == "true" })
		if marked && (!ok || class.GetCreationTimestamp().After(newest.GetCreationTimestamp().Time)) {
			newest, ok = class, true
		}
	}
	return newest, ok
}
