// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// binding is a WebhookBinding, compiled.
type binding struct {
	*manifest.Binding
	clusters labels.Selector
	says     dispatch
	selected int // clusters
}

// validateBinding checks which webhooks and clusters the binding selects;
// bindingFields checks the rest.
func validateBinding(b *v1alpha1.WebhookBinding) field.ErrorList {
	errs := validation.ValidateObjectMeta(&b.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	errs = append(errs, validateGlobs(b.Spec.Webhooks, spec.Child("webhooks"))...)
	return append(errs, metav1validation.ValidateLabelSelector(b.Spec.ClusterSelector,
		metav1validation.LabelSelectorValidationOptions{}, spec.Child("clusterSelector"))...)
}

func validateGlobs(globs []string, at *field.Path) field.ErrorList {
	if len(globs) == 0 {
		return field.ErrorList{field.Required(at, "at least one glob of the form configuration/webhook")}
	}
	var errs field.ErrorList
	for i, glob := range globs {
		if n := strings.Count(glob, "/"); n != 1 && n != 2 {
			errs = append(errs, field.Invalid(at.Index(i), glob, "must have the form configuration/webhook, or cluster/configuration/webhook; \"*/*\" is every webhook that is not of one cluster"))
		} else if _, err := path.Match(glob, ""); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), glob, err.Error()))
		}
	}
	return errs
}

// binds reports whether one of the binding's globs selects the webhook.
func (b *binding) binds(configuration, webhook string) bool {
	for _, glob := range b.Spec.Webhooks {
		if globMatches(glob, configuration, webhook) {
			return true
		}
	}
	return false
}

func globMatches(glob, configuration, webhook string) bool {
	ok, err := path.Match(glob, configuration+"/"+webhook)
	return ok && err == nil
}

// conflict is one field that two bindings set differently (E16).
type conflict struct {
	first, second *binding
	field         string
}

// merge is bindings put together for one webhook and cluster.
type merge struct {
	dispatch  dispatch
	conflicts []conflict
	names     []string // of the bindings, sorted
}

// mergeBindings puts together what the bindings say. Their order decides only which
// of two that disagree is named first.
func mergeBindings(bindings []*binding) merge {
	var m merge
	var first [len(dispatch{})]*binding
	for _, b := range bindings {
		m.names = append(m.names, b.Name)
		for i, v := range b.says {
			switch {
			case v == nil:
			case first[i] == nil:
				m.dispatch[i], first[i] = v, b
			case m.dispatch[i] != v:
				m.conflicts = append(m.conflicts, conflict{first[i], b, bindingFields[i].name})
			}
		}
	}
	return m
}
