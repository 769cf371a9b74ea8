// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func limited(d dice) *request {
	q := podRequest(d)
	if d.one(4) {
		q = claim(d)
		q.stored = nil
	} else if d.one(2) {
		q.operation, q.subresource, q.old = admissionv1.Create, "", nil
	} else if d.one(2) {
		q.subresource = "resize"
	}
	if q.object == nil {
		q.operation, q.old, q.object = admissionv1.Create, nil, d.pod()
		q.kind, q.resource = "Pod", corev1.SchemeGroupVersion.WithResource("pods")
	}
	kinds := []corev1.LimitType{corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim}
	for i := range d.IntN(4) {
		r := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", 9-i), Namespace: pick(d, "shop", "shop", "shop", "other")}}
		r.Spec.Limits = some(d, 4, func() (l corev1.LimitRangeItem) {
			l.Type = pick(d, kinds...)
			for _, list := range []*corev1.ResourceList{&l.Min, &l.Max, &l.Default, &l.DefaultRequest, &l.MaxLimitRequestRatio} {
				if d.one(2) {
					*list = d.list()
				}
			}
			if q.kind == "PersistentVolumeClaim" && d.one(2) {
				l.Type = corev1.LimitTypePersistentVolumeClaim
				l.Min, l.Max = nil, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(pick(d, "1Gi", "600Mi", "10E"))}
				if d.one(2) {
					l.Min, l.Max = l.Max, nil
				}
			}
			return l
		})
		q.store(r, "LimitRange")
	}
	return q
}

func nodeSelected(d dice) *request {
	q := podRequest(d)
	q.namespace = pick(d, "shop", "shop", "shop", "store")
	configuration := map[string]string{}
	if d.one(2) {
		configuration["clusterDefaultNodeSelector"] = pick(d, "", "team=a", "zone = b , team=a")
	}
	if d.one(2) {
		configuration["shop"] = pick(d, "", "team=a,zone=b", "team=a, zone=a,zone=b, node.kubernetes.io/pool=")
	}
	if len(configuration) > 0 {
		q.configuration = string(must(json.Marshal(map[string]any{"podNodeSelectorPluginConfig": configuration})))
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.namespace}}
	if !d.one(3) {
		n.Annotations = map[string]string{pick(d, "a", "scheduler.alpha.kubernetes.io/node-selector", "scheduler.alpha.kubernetes.io/node-selector"): pick(d,
			"", "team=a", " team = a ", "team=b,zone=a", "node.kubernetes.io/pool=a", "team", "team=a=b", "-=a", "team=-", "team=a,team=b", strings.Repeat("a", 70)+"=a")}
	}
	if !d.one(12) {
		q.store(n, "Namespace")
	}
	return q
}

func tolerating(d dice) *request {
	q := podRequest(d)
	q.namespace = "shop"
	valid := func() corev1.Toleration {
		t := d.toleration()
		t.Operator, t.Effect, t.TolerationSeconds = corev1.TolerationOpExists, pick(d, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute), nil
		t.Value = ""
		if t.Effect == corev1.TaintEffectNoExecute {
			t.TolerationSeconds = maybe(d, int64(60), 300)
		}
		if t.Key != "" && d.one(2) {
			t.Operator, t.Value = corev1.TolerationOpEqual, pick(d, "", "x")
		}
		return t
	}
	if !d.one(4) {
		configuration := map[string]any{"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration"}
		if d.one(2) {
			configuration["default"] = some(d, 3, valid)
		}
		if d.one(2) {
			configuration["whitelist"] = append(some(d, 4, valid), pick(d, corev1.Toleration{Operator: "Exists"}, corev1.Toleration{Key: "a", Operator: "Exists"}))
		}
		q.configuration = string(must(json.Marshal(configuration)))
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.namespace, Annotations: map[string]string{}}}
	text := func() string {
		switch d.IntN(8) {
		case 0:
			return pick(d, "", "null", "[]", "[{}]", `[{"KEY":"a","operator":"Exists"}]`)
		case 1:
			return pick(d, "{", `[{"key":7}]`, "{}", `"a"`, `[{"tolerationSeconds":1.5}]`)
		}
		return string(must(json.Marshal(some(d, 4, d.toleration))))
	}
	if d.one(2) {
		n.Annotations["scheduler.alpha.kubernetes.io/defaultTolerations"] = text()
	}
	if d.one(2) {
		n.Annotations["scheduler.alpha.kubernetes.io/tolerationsWhitelist"] = text()
	}
	if !d.one(12) {
		q.store(n, "Namespace")
	}
	return q
}

func prioritized(d dice) *request {
	draw := func(name string) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: pick(d, int32(0), 5, 10, 1000), GlobalDefault: d.one(3), PreemptionPolicy: maybe(d, corev1.PreemptNever, corev1.PreemptLowerPriority),
		}
	}
	q := podRequest(d)
	if d.one(3) {
		q = &request{
			operation: pick(d, admissionv1.Create, admissionv1.Update, admissionv1.Delete), resource: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"),
			kind: "PriorityClass", subresource: pick(d, "", "", "", "", "other"), name: pick(d, "", "high"), object: draw(pick(d, "high", "low", "new")),
		}
		q.object.(*schedulingv1.PriorityClass).GlobalDefault = d.one(2)
		if q.operation != admissionv1.Create {
			q.old = q.object
		}
		if q.operation == admissionv1.Delete {
			q.object = nil
		}
	}
	for _, name := range []string{"high", "low", "other"} {
		if !d.one(4) {
			q.store(draw(name), "PriorityClass")
		}
	}
	return q
}

func runtimeClassed(d dice) *request {
	q := podRequest(d)
	for _, name := range []string{"kata", "gvisor", "none"} {
		c := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "h"}
		if name != "none" && !d.one(4) {
			c.Overhead = &nodev1.Overhead{PodFixed: d.list("100m", "0.1", "1Gi")}
			if pod, ok := q.object.(*corev1.Pod); ok && d.one(3) {
				c.Overhead.PodFixed = pod.Spec.Overhead
			}
		}
		if name != "none" && !d.one(4) {
			c.Scheduling = &nodev1.Scheduling{NodeSelector: d.labels(), Tolerations: some(d, 4, d.toleration)}
		}
		q.store(c, "RuntimeClass")
	}
	return q
}
