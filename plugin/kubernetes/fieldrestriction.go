// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/internal/objectpath"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// FieldRestriction denies it to users to set, change or remove certain labels, annotations
// and fields, and to let pods tolerate certain taints. What is not changed may stay. It is no
// API server's: the proposal for webhooks names such plugins as wanted.
//
// Its rules have each subresource by which something of an object is written: an API server
// takes labels and annotations from what is sent to most kinds' status, and gives a pod those
// of its Binding.
func FieldRestriction() plugin.Plugin {
	const create, update = admissionregistrationv1.Create, admissionregistrationv1.Update
	return plugin.New("FieldRestriction", []admissionregistrationv1.RuleWithOperations{
		plugin.Rule("", "v1", []string{
			"pods", "pods/binding", "pods/ephemeralcontainers", "pods/resize", "pods/status", "bindings",
			"podtemplates", "replicationcontrollers", "replicationcontrollers/scale", "replicationcontrollers/status",
		}, create, update),
		plugin.Rule("apps", "v1", []string{
			"daemonsets", "daemonsets/status", "deployments", "deployments/scale", "deployments/status",
			"replicasets", "replicasets/scale", "replicasets/status", "statefulsets", "statefulsets/scale", "statefulsets/status",
		}, create, update),
		plugin.Rule("batch", "v1", []string{"cronjobs", "cronjobs/status", "jobs", "jobs/status"}, create, update),
	}, newFieldRestrictions)
}

// fieldRestrictions is the plugin.
type fieldRestrictions []fieldRestriction

func (list fieldRestrictions) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if o := a.Operation(); o != admissionv1.Create && o != admissionv1.Update {
		return plugin.Answer{}, nil
	}
	user := a.User()
	for i := range list {
		r := &list[i]
		if r.exempts(&user) {
			continue
		}
		denied, err := r.check(a)
		if err != nil {
			return plugin.Answer{}, err
		}
		if len(denied) > maxDenied {
			denied = append(denied[:maxDenied], "...")
		}
		if len(denied) > 0 {
			return a.Forbid("restriction %q: user %q may not set %s", r.Name, user.Username, strings.Join(denied, ", ")), nil
		}
	}
	return plugin.Answer{}, nil
}

// maxDenied is how much of what is denied is named.
const maxDenied = 10

func (r *fieldRestriction) exempts(user *authenticationv1.UserInfo) bool {
	return slices.Contains(r.Exempt.Users, user.Username) ||
		slices.ContainsFunc(user.Groups, func(group string) bool { return slices.Contains(r.Exempt.Groups, group) })
}

// check returns what the request sets and may not, in order.
func (r *fieldRestriction) check(a *plugin.Attributes) (denied []string, err error) {
	if r.Labels != nil || r.Annotations != nil {
		if denied, err = r.metadata(a); err != nil {
			return nil, err
		}
	}
	if len(r.Taints) > 0 {
		tolerated, err := r.tolerations(a)
		if err != nil {
			return nil, err
		}
		denied = append(denied, tolerated...)
	}
	if len(r.Fields) > 0 {
		fields, err := r.fields(a)
		if err != nil {
			return nil, err
		}
		denied = append(denied, fields...)
	}
	return denied, nil
}

func (r *fieldRestriction) metadata(a *plugin.Attributes) (denied []string, err error) {
	var sets [2]struct{ labels, annotations map[string]string }
	for i, o := range []plugin.Object{a.OldObject(), a.Object()} {
		metadata, err := o.Metadata()
		if err != nil {
			return nil, err
		}
		if metadata != nil {
			sets[i].labels, sets[i].annotations = metadata.Labels, metadata.Annotations
		}
	}
	before, now := sets[0], sets[1]
	for _, key := range r.Labels.changed(before.labels, now.labels) {
		denied = append(denied, "label "+key)
	}
	for _, key := range r.Annotations.changed(before.annotations, now.annotations) {
		denied = append(denied, "annotation "+key)
	}
	return denied, nil
}

// changed returns the restricted keys whose values differ, in order.
func (k *restrictedKeys) changed(before, now map[string]string) []string {
	changed := map[string]bool{}
	for _, side := range [2][2]map[string]string{{before, now}, {now, before}} {
		for key, value := range side[0] {
			if other, ok := side[1][key]; (!ok || other != value) && k.restricts(key) {
				changed[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// tolerations returns the restricted taints that pods tolerate and did not before.
func (r *fieldRestriction) tolerations(a *plugin.Attributes) (denied []string, err error) {
	now, before, err := podTolerations(a)
	if err != nil {
		return nil, err
	}
	known := map[corev1.Toleration]bool{}
	for _, t := range before {
		known[untimed(t)] = true
	}
	for _, t := range now {
		if known[untimed(t)] {
			continue
		}
		known[untimed(t)] = true
		for i := range r.Taints {
			if r.Taints[i].isToleratedBy(&t) {
				denied = append(denied, "a toleration of taint "+r.Taints[i].String())
				break
			}
		}
	}
	return denied, nil
}

// untimed is a toleration without the time for which it holds, which no restriction is about.
func untimed(t corev1.Toleration) corev1.Toleration {
	t.TolerationSeconds = nil
	return t
}

// podTolerations returns what the pods of the request tolerate, and did before.
func podTolerations(a *plugin.Attributes) (now, before []corev1.Toleration, err error) {
	if !a.Is("", "pods") {
		template, err := podsecurity.TemplateOf(a, a.Object())
		if template == nil {
			return nil, nil, err
		}
		old, err := podsecurity.TemplateOf(a, a.OldObject())
		if old == nil {
			old = &corev1.PodTemplateSpec{}
		}
		return template.Spec.Tolerations, old.Spec.Tolerations, err
	}
	pod, err := podOf(a)
	if pod == nil {
		return nil, nil, err
	}
	old, err := plugin.Decode[corev1.Pod](a.OldObject())
	if old == nil {
		old = &corev1.Pod{}
	}
	return pod.Spec.Tolerations, old.Spec.Tolerations, err
}

// fields returns the restricted fields that have other values than before.
func (r *fieldRestriction) fields(a *plugin.Attributes) (denied []string, err error) {
	now, err := a.Object().Unstructured()
	if err != nil {
		return nil, err
	}
	before, err := a.OldObject().Unstructured()
	if err != nil {
		return nil, err
	}
	for i := range r.Fields {
		f := &r.Fields[i]
		values, old := map[string]any{}, map[string]any{}
		if now != nil {
			valuesAt(values, "", now.Object, f.path)
		}
		if before != nil {
			valuesAt(old, "", before.Object, f.path)
		}
		if !f.allows(old, values) {
			denied = append(denied, "field "+f.Path)
		}
	}
	return denied, nil
}

// valuesAt enters what is at the path by where it is: a * is each element of a list, or each
// value of a map.
func valuesAt(values map[string]any, at string, in any, path objectpath.Path) {
	if len(path) == 0 {
		values[at] = in
		return
	}
	switch in := in.(type) {
	case map[string]any:
		if !path[0].Any {
			if value, ok := in[path[0].Name]; ok {
				valuesAt(values, at, value, path[1:])
			}
			return
		}
		for key, value := range in {
			valuesAt(values, at+"\x00"+key, value, path[1:])
		}
	case []any:
		if path[0].Any {
			for i, element := range in {
				valuesAt(values, at+"\x00"+strconv.Itoa(i), element, path[1:])
			}
		}
	}
}
