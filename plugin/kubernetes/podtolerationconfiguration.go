// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const tolerationRestrictionVersion = "podtolerationrestriction.admission.k8s.io/v1alpha1"

// validate finds what kube-apiserver finds wrong with its configuration.
func (r *tolerationRestriction) validate() (errs field.ErrorList) {
	errs = validateType(r.TypeMeta, "Configuration", tolerationRestrictionVersion)
	for _, list := range []struct {
		name        string
		tolerations []corev1.Toleration
	}{{"default", r.Default}, {"whitelist", r.Whitelist}} {
		at := field.NewPath(list.name)
		if len(list.tolerations) > maxTolerations/2 { // a pod has some, too
			errs = append(errs, field.TooMany(at, len(list.tolerations), maxTolerations/2))
			continue
		}
		for i := range list.tolerations {
			errs = append(errs, validateToleration(&list.tolerations[i], at.Index(i))...)
		}
	}
	return errs
}

func validateToleration(t *corev1.Toleration, at *field.Path) (errs field.ErrorList) {
	if t.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	}
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(at.Child("operator"), t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if wrong := validation.IsValidLabelValue(t.Value); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Value, strings.Join(wrong, ";")))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect,
			[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
	}
	return errs
}
