// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// PersistentVolumeClaimResize denies that a claim requests more storage than before, unless
// it is bound and its StorageClass lets volumes grow.
func PersistentVolumeClaimResize() plugin.Plugin {
	p := unconfigured("PersistentVolumeClaimResize", volumeResize{}, plugin.Rule("", "v1", []string{"persistentvolumeclaims"}, "UPDATE"))
	p.Lists = append(p.Lists, storageClasses)
	return p
}

type volumeResize struct{}

func (volumeResize) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if !a.Is("", "persistentvolumeclaims") || a.Operation() != admissionv1.Update {
		return plugin.Answer{}, nil
	}
	claim, err := plugin.Decode[corev1.PersistentVolumeClaim](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	old, err := plugin.Decode[corev1.PersistentVolumeClaim](a.OldObject())
	if err != nil {
		return plugin.Answer{}, err
	}
	if claim == nil || old == nil {
		return plugin.Answer{}, missing("PersistentVolumeClaim")
	}
	now, before := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if !isLarger(now, before) {
		return plugin.Answer{}, nil
	}
	if old.Status.Phase != corev1.ClaimBound {
		return a.Forbid("Only bound persistent volume claims can be expanded"), nil
	}
	class := classOf(claim)
	if class != "" && class == classOf(old) {
		stored, err := plugin.Get[storagev1.StorageClass](a, storageClasses, "", class)
		if err != nil {
			return plugin.Answer{}, err
		}
		if stored != nil && stored.AllowVolumeExpansion != nil && *stored.AllowVolumeExpansion {
			return plugin.Answer{}, nil
		}
	}
	return a.Forbid("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"), nil
}

// classOf is the StorageClass that a claim names; "": none.
func classOf(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}
