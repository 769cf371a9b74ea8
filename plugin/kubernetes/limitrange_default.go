// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// limitRangerAnnotation says which defaults a pod has been given.
const limitRangerAnnotation = "kubernetes.io/limit-ranger"

// defaults are a pod's resources with what LimitRanges add.
type defaults struct {
	pod        *corev1.Pod
	containers []defaulted
	note       string // of the last LimitRange that has added something
}

// defaulted is a container's.
type defaulted struct {
	*corev1.Container
	path             []any
	kind             string
	requests, limits corev1.ResourceList
}

func newDefaults(pod *corev1.Pod) *defaults {
	d := &defaults{pod: pod}
	for _, list := range []struct {
		field, kind string
		containers  []corev1.Container
	}{{"containers", "container", pod.Spec.Containers}, {"initContainers", "init container", pod.Spec.InitContainers}} {
		for i := range list.containers {
			c := &list.containers[i]
			d.containers = append(d.containers, defaulted{
				c, []any{"spec", list.field, i, "resources"}, list.kind, copied(c.Resources.Requests), copied(c.Resources.Limits),
			})
		}
	}
	return d
}

// copied is a copy that can be written to.
func copied(list corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(list))
	maps.Copy(out, list)
	return out
}

// add adds the defaults of one LimitRange. Of several in it for one resource the last counts.
func (d *defaults) add(r *corev1.LimitRange) {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range r.Spec.Limits {
		if l := &r.Spec.Limits[i]; l.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, l.DefaultRequest)
			maps.Copy(limits, l.Default)
		}
	}
	var notes []string
	for i := range d.containers {
		c := &d.containers[i]
		if names := fill(c.requests, requests); names != "" {
			notes = append(notes, names+" request for "+c.kind+" "+c.Name)
		}
		if names := fill(c.limits, limits); names != "" {
			notes = append(notes, names+" limit for "+c.kind+" "+c.Name)
		}
	}
	if len(notes) > 0 {
		d.note = "LimitRanger plugin set: " + strings.Join(notes, "; ")
	}
}

// fill adds what the list does not have, and names it.
func fill(list, more corev1.ResourceList) string {
	var added []string
	for name, quantity := range more {
		if _, ok := list[name]; !ok {
			list[name] = quantity
			added = append(added, string(name))
		}
	}
	slices.Sort(added)
	return strings.Join(added, ", ")
}

// patch gives the pod what was added.
func (d *defaults) patch() (patch []plugin.Operation) {
	for i := range d.containers {
		c := &d.containers[i]
		switch own := &c.Resources; {
		case len(own.Requests)+len(own.Limits)+len(own.Claims) > 0:
			patch = append(patch, addEntries(own.Requests, c.requests, append(c.path, "requests")...)...)
			patch = append(patch, addEntries(own.Limits, c.limits, append(c.path, "limits")...)...)
		case len(c.requests)+len(c.limits) > 0: // the field may not be there
			patch = append(patch, plugin.Add(corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits}, c.path...))
		}
	}
	if d.note == "" {
		return patch
	}
	if len(d.pod.Annotations) == 0 {
		return append(patch, plugin.Add(map[string]string{limitRangerAnnotation: d.note}, "metadata", "annotations"))
	}
	return append(patch, plugin.Add(d.note, "metadata", "annotations", limitRangerAnnotation))
}
