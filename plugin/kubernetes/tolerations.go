// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// maxTolerations bounds how many tolerations are compared with each other, each with each:
// a million comparisons take some 10 ms.
const maxTolerations = 1000

// merge is what becomes of the tolerations of a pod that is given more.
type merge struct {
	tolerations []corev1.Toleration
	patch       []plugin.Operation
}

// mergeTolerations adds more to the tolerations of a pod, and leaves out those that others
// cover. ok is false where they are too many.
func mergeTolerations(own, more []corev1.Toleration) (m merge, ok bool) {
	all := slices.Concat(own, more)
	if len(all) > maxTolerations {
		return merge{}, false
	}
	var added []corev1.Toleration
	for i := range all {
		t := &all[i]
		covered := isCovered(t, m.tolerations)
		for j := i + 1; !covered && j < len(all); j++ { // of equal ones the first is kept
			covered = !sameToleration(&all[j], t) && covers(&all[j], t)
		}
		switch {
		case !covered:
			m.tolerations = append(m.tolerations, *t)
			if i >= len(own) {
				added = append(added, *t)
			}
		case i < len(own): // the last one is removed first
			m.patch = slices.Insert(m.patch, 0, plugin.Remove("spec", "tolerations", i))
		}
	}
	if len(own) == 0 && len(added) > 0 {
		m.patch = []plugin.Operation{plugin.Add(added, "spec", "tolerations")}
		return m, true
	}
	for i := range added {
		m.patch = append(m.patch, plugin.Add(added[i], "spec", "tolerations", plugin.End))
	}
	return m, true
}

// isCovered reports whether one of the list covers t.
func isCovered(t *corev1.Toleration, list []corev1.Toleration) bool {
	for i := range list {
		if covers(&list[i], t) {
			return true
		}
	}
	return false
}

// covers reports whether all tolerates everything that t does.
func covers(all, t *corev1.Toleration) bool {
	if sameToleration(all, t) {
		return true
	}
	if all.Key != t.Key && (all.Key != "" || all.Operator != corev1.TolerationOpExists) {
		return false
	}
	if all.Effect != t.Effect && all.Effect != "" {
		return false
	}
	if all.Effect == corev1.TaintEffectNoExecute && all.TolerationSeconds != nil &&
		(t.TolerationSeconds == nil || *t.TolerationSeconds > *all.TolerationSeconds) {
		return false
	}
	switch all.Operator {
	case corev1.TolerationOpEqual, "":
		return t.Operator == corev1.TolerationOpEqual && t.Value == all.Value
	case corev1.TolerationOpExists:
		return true
	}
	return false
}

func sameToleration(a, b *corev1.Toleration) bool {
	if (a.TolerationSeconds == nil) != (b.TolerationSeconds == nil) || a.TolerationSeconds != nil && *a.TolerationSeconds != *b.TolerationSeconds {
		return false
	}
	return a.Key == b.Key && a.Operator == b.Operator && a.Value == b.Value && a.Effect == b.Effect
}
