// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/objectpath"
)

// fieldConfiguration is the configuration of FieldRestriction.
type fieldConfiguration struct {
	Restrictions []fieldRestriction `json:"restrictions"`
}

// fieldRestriction is what all users but those that are exempt may not set.
type fieldRestriction struct {
	Name   string `json:"name"`
	Exempt struct {
		Users  []string `json:"users,omitempty"`
		Groups []string `json:"groups,omitempty"`
	} `json:"exempt"`
	Labels      *restrictedKeys   `json:"labels,omitempty"`
	Annotations *restrictedKeys   `json:"annotations,omitempty"`
	Taints      []restrictedTaint `json:"taints,omitempty"`
	Fields      []restrictedField `json:"fields,omitempty"`
}

// restrictedKeys are those that Denied names and Allowed does not. With none that are denied
// all are. A * at the end stands for anything.
type restrictedKeys struct {
	Denied  []string `json:"denied,omitempty"`
	Allowed []string `json:"allowed,omitempty"`
}

func (k *restrictedKeys) restricts(key string) bool {
	if k == nil {
		return false
	}
	named := func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return key == pattern || open && strings.HasPrefix(key, prefix)
	}
	return (len(k.Denied) == 0 || slices.ContainsFunc(k.Denied, named)) && !slices.ContainsFunc(k.Allowed, named)
}

// restrictedTaint is a taint of nodes that may not be tolerated: of any value or effect where
// it has none.
type restrictedTaint struct {
	Key    string             `json:"key"`
	Value  string             `json:"value,omitempty"`
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}

// String is as kubectl writes a taint.
func (t *restrictedTaint) String() string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}

// isToleratedBy reports whether the toleration is about such a taint, and perhaps about
// others besides: one without a key is about all.
func (t *restrictedTaint) isToleratedBy(by *corev1.Toleration) bool {
	switch {
	case by.Key != "" && by.Key != t.Key, by.Effect != "" && t.Effect != "" && by.Effect != t.Effect:
		return false
	}
	isEqual := cmp.Or(by.Operator, corev1.TolerationOpEqual) == corev1.TolerationOpEqual
	return t.Value == "" || !isEqual || by.Value == t.Value
}

// restrictedField is a field that may have no other value than before. Anybody may set, and
// take away again, the values in Values.
type restrictedField struct {
	Path   string `json:"path"`
	Values []any  `json:"values,omitempty"`

	path objectpath.Path
}

// allows reports whether what differs between the values, by where they are, may: what is
// set now, and what is removed.
func (f *restrictedField) allows(before, now map[string]any) bool {
	for at, value := range now {
		if old, ok := before[at]; !(ok && reflect.DeepEqual(value, old)) && !f.isOpen(value) {
			return false
		}
	}
	for at, value := range before {
		if _, ok := now[at]; !ok && !f.isOpen(value) {
			return false
		}
	}
	return true
}

// isOpen reports whether anybody may set the value.
func (f *restrictedField) isOpen(value any) bool {
	return slices.ContainsFunc(f.Values, func(allowed any) bool { return reflect.DeepEqual(value, allowed) })
}

// maxRestrictions bounds what a request is compared with: restrictions, and what each lists
// of a kind.
const maxRestrictions = 100

func newFieldRestrictions(c *fieldConfiguration) (any, field.ErrorList) {
	at := field.NewPath("restrictions")
	if len(c.Restrictions) == 0 {
		return nil, field.ErrorList{field.Required(at, "at least one restriction")}
	}
	if len(c.Restrictions) > maxRestrictions {
		return nil, field.ErrorList{field.TooMany(at, len(c.Restrictions), maxRestrictions)}
	}
	var errs field.ErrorList
	for i := range c.Restrictions {
		r, at := &c.Restrictions[i], at.Index(i)
		if r.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "denials name it"))
		}
		if r.Labels == nil && r.Annotations == nil && len(r.Taints) == 0 && len(r.Fields) == 0 {
			errs = append(errs, field.Required(at, "labels, annotations, taints or fields"))
		}
		errs = append(errs, r.Labels.validate(at.Child("labels"))...)
		errs = append(errs, r.Annotations.validate(at.Child("annotations"))...)
		errs = append(errs, validateTaints(r.Taints, at.Child("taints"))...)
		errs = append(errs, parseFields(r.Fields, at.Child("fields"))...)
	}
	return fieldRestrictions(c.Restrictions), errs
}

func (k *restrictedKeys) validate(at *field.Path) (errs field.ErrorList) {
	if k == nil {
		return nil
	}
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"denied", k.Denied}, {"allowed", k.Allowed}} {
		at := at.Child(list.name)
		if len(list.patterns) > maxRestrictions {
			errs = append(errs, field.TooMany(at, len(list.patterns), maxRestrictions))
		}
		for i, pattern := range list.patterns {
			if pattern == "" || strings.Contains(strings.TrimSuffix(pattern, "*"), "*") {
				errs = append(errs, field.Invalid(at.Index(i), pattern, "must be a key, or the beginning of one with a * at its end"))
			}
		}
	}
	return errs
}

func validateTaints(taints []restrictedTaint, at *field.Path) (errs field.ErrorList) {
	if len(taints) > maxRestrictions {
		errs = append(errs, field.TooMany(at, len(taints), maxRestrictions))
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule}
	for i := range taints {
		if taints[i].Key == "" {
			errs = append(errs, field.Required(at.Index(i).Child("key"), "the key of a taint"))
		}
		if !slices.Contains(effects, taints[i].Effect) {
			errs = append(errs, field.NotSupported(at.Index(i).Child("effect"), taints[i].Effect, effects[1:]))
		}
	}
	return errs
}

func parseFields(fields []restrictedField, at *field.Path) (errs field.ErrorList) {
	if len(fields) > maxRestrictions {
		errs = append(errs, field.TooMany(at, len(fields), maxRestrictions))
	}
	for i := range fields {
		var err error
		if fields[i].path, err = objectpath.Parse(fields[i].Path); err != nil {
			errs = append(errs, field.Invalid(at.Index(i).Child("path"), fields[i].Path, err.Error()))
		}
	}
	return errs
}
