// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/mirror"
)

// ownConditions are those that the controller writes. An object may have more.
var ownConditions = []string{
	v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs, v1alpha1.ConditionProgrammed,
	v1alpha1.ConditionReachable, v1alpha1.ConditionNamespacesSynced, v1alpha1.ConditionRegistrationCurrent,
}

// seen returns what an object has in the API.
type seen func(key string) (status json.RawMessage, generation int64, ok bool)

// plan returns what is to be written: of all objects that do not have the conditions that
// they should have. Those come first whose acceptance has changed.
func (v *view) plan(has seen, now time.Time) (list []write) {
	var later []write
	for i := range v.decision.Objects {
		o := &v.decision.Objects[i]
		if plurals[mirror.KindOf(o.Key)] == "" {
			continue // a ConfigMap has no status
		}
		text, generation, ok := has(o.Key)
		if !ok || generation != o.Generation {
			continue // it has gone, or is about to be judged again
		}
		var before v1alpha1.Status
		_ = json.Unmarshal(text, &before) // one that cannot be read is written
		wants := v.conditions(o)
		urgent, differs := compareConditions(before.Conditions, wants)
		if !differs {
			continue
		}
		w := write{o.Key, sumOf(wants), v1alpha1.Status{Conditions: timed(wants, before.Conditions, now)}}
		if urgent {
			list = append(list, w)
		} else {
			later = append(later, w)
		}
	}
	return append(append(list, v.planRegistry(has, now)...), later...)
}

func (v *view) planRegistry(has seen, now time.Time) []write {
	const key = registryKind + "/" + v1alpha1.RegistryName
	text, generation, ok := has(key)
	if !ok {
		return nil
	}
	var before v1alpha1.RegistryStatus
	_ = json.Unmarshal(text, &before)
	wants := v.registry(generation)
	sum := sumOf(wants)
	untimed := before
	untimed.Conditions = nil
	for _, c := range before.Conditions {
		if slices.Contains(ownConditions, c.Type) {
			c.LastTransitionTime = metav1.Time{}
			untimed.Conditions = append(untimed.Conditions, c)
		}
	}
	slices.SortFunc(untimed.Conditions, byType)
	slices.SortFunc(wants.Conditions, byType)
	if sumOf(untimed) == sumOf(wants) {
		return nil
	}
	wants.Conditions = timed(wants.Conditions, before.Conditions, now)
	return []write{{key, sum, wants}}
}

func byType(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) }

// compareConditions reports whether an object lacks any of wants, or has one of ours that
// is not wanted; and whether it is about acceptance.
func compareConditions(has, wants []metav1.Condition) (urgent, differs bool) {
	for i := range wants {
		before := meta.FindStatusCondition(has, wants[i].Type)
		if before == nil || before.Status != wants[i].Status || before.Reason != wants[i].Reason ||
			before.Message != wants[i].Message || before.ObservedGeneration != wants[i].ObservedGeneration {
			differs = true
			urgent = urgent || wants[i].Type == v1alpha1.ConditionAccepted
		}
	}
	for i := range has {
		if slices.Contains(ownConditions, has[i].Type) && meta.FindStatusCondition(wants, has[i].Type) == nil {
			differs = true
		}
	}
	return urgent, differs
}

// timed returns conditions with the time since when their status is what it is.
func timed(wants, has []metav1.Condition, now time.Time) []metav1.Condition {
	wants = slices.Clone(wants)
	for i := range wants {
		wants[i].LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		if before := meta.FindStatusCondition(has, wants[i].Type); before != nil && before.Status == wants[i].Status && !before.LastTransitionTime.IsZero() {
			wants[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	return wants
}

// sumOf is a text that is the same for the same status.
func sumOf(status any) string { return string(document(status)) }
