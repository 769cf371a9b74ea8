// SPDX-License-Identifier: Apache-2.0

package sample

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

func limited(d Dice) *Request {
	q := podRequest(d)
	if d.One(4) {
		q = claim(d)
		q.Stored = nil
	} else if d.One(2) {
		q.Operation, q.Subresource, q.Old = admissionv1.Create, "", nil
	} else if d.One(2) {
		q.Subresource = "resize"
	}
	if q.Object == nil {
		q.Operation, q.Old, q.Object = admissionv1.Create, nil, d.pod()
		q.Kind, q.Resource = "Pod", corev1.SchemeGroupVersion.WithResource("pods")
	}
	kinds := []corev1.LimitType{corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim}
	for i := range d.IntN(4) {
		r := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", 9-i), Namespace: Pick(d, "shop", "shop", "shop", "other")}}
		r.Spec.Limits = Some(d, 4, func() (l corev1.LimitRangeItem) {
			l.Type = Pick(d, kinds...)
			for _, list := range []*corev1.ResourceList{&l.Min, &l.Max, &l.Default, &l.DefaultRequest, &l.MaxLimitRequestRatio} {
				if d.One(2) {
					*list = d.list()
				}
			}
			if q.Kind == "PersistentVolumeClaim" && d.One(2) {
				l.Type = corev1.LimitTypePersistentVolumeClaim
				l.Min, l.Max = nil, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(Pick(d, "1Gi", "600Mi", "10E"))}
				if d.One(2) {
					l.Min, l.Max = l.Max, nil
				}
			}
			return l
		})
		q.store(r, "LimitRange")
	}
	return q
}

func nodeSelected(d Dice) *Request {
	q := podRequest(d)
	q.Namespace = Pick(d, "shop", "shop", "shop", "store")
	configuration := map[string]string{}
	if d.One(2) {
		configuration["clusterDefaultNodeSelector"] = Pick(d, "", "team=a", "zone = b , team=a")
	}
	if d.One(2) {
		configuration["shop"] = Pick(d, "", "team=a,zone=b", "team=a, zone=a,zone=b, node.kubernetes.io/pool=")
	}
	if len(configuration) > 0 {
		q.Configuration = string(must(json.Marshal(map[string]any{"podNodeSelectorPluginConfig": configuration})))
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.Namespace}}
	if !d.One(3) {
		n.Annotations = map[string]string{Pick(d, "a", "scheduler.alpha.kubernetes.io/node-selector", "scheduler.alpha.kubernetes.io/node-selector"): Pick(d,
			"", "team=a", " team = a ", "team=b,zone=a", "node.kubernetes.io/pool=a", "team", "team=a=b", "-=a", "team=-", "team=a,team=b", strings.Repeat("a", 70)+"=a")}
	}
	if !d.One(12) {
		q.store(n, "Namespace")
	}
	return q
}

func tolerating(d Dice) *Request {
	q := podRequest(d)
	q.Namespace = "shop"
	valid := func() corev1.Toleration {
		t := d.toleration()
		t.Operator, t.Effect, t.TolerationSeconds = corev1.TolerationOpExists, Pick(d, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute), nil
		t.Value = ""
		if t.Effect == corev1.TaintEffectNoExecute {
			t.TolerationSeconds = Maybe(d, int64(60), 300)
		}
		if t.Key != "" && d.One(2) {
			t.Operator, t.Value = corev1.TolerationOpEqual, Pick(d, "", "x")
		}
		return t
	}
	if !d.One(4) {
		configuration := map[string]any{"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration"}
		if d.One(2) {
			configuration["default"] = Some(d, 3, valid)
		}
		if d.One(2) {
			configuration["whitelist"] = append(Some(d, 4, valid), Pick(d, corev1.Toleration{Operator: "Exists"}, corev1.Toleration{Key: "a", Operator: "Exists"}))
		}
		q.Configuration = string(must(json.Marshal(configuration)))
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.Namespace, Annotations: map[string]string{}}}
	text := func() string {
		switch d.IntN(8) {
		case 0:
			return Pick(d, "", "null", "[]", "[{}]", `[{"KEY":"a","operator":"Exists"}]`)
		case 1:
			return Pick(d, "{", `[{"key":7}]`, "{}", `"a"`, `[{"tolerationSeconds":1.5}]`)
		}
		return string(must(json.Marshal(Some(d, 4, d.toleration))))
	}
	if d.One(2) {
		n.Annotations["scheduler.alpha.kubernetes.io/defaultTolerations"] = text()
	}
	if d.One(2) {
		n.Annotations["scheduler.alpha.kubernetes.io/tolerationsWhitelist"] = text()
	}
	if !d.One(12) {
		q.store(n, "Namespace")
	}
	return q
}

func prioritized(d Dice) *Request {
	draw := func(name string) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: Pick(d, int32(0), 5, 10, 1000), GlobalDefault: d.One(3), PreemptionPolicy: Maybe(d, corev1.PreemptNever, corev1.PreemptLowerPriority),
		}
	}
	q := podRequest(d)
	if d.One(3) {
		q = &Request{
			Operation: Pick(d, admissionv1.Create, admissionv1.Update, admissionv1.Delete), Resource: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"),
			Kind: "PriorityClass", Subresource: Pick(d, "", "", "", "", "other"), Name: Pick(d, "", "high"), Object: draw(Pick(d, "high", "low", "new")),
		}
		q.Object.(*schedulingv1.PriorityClass).GlobalDefault = d.One(2)
		if q.Operation != admissionv1.Create {
			q.Old = q.Object
		}
		if q.Operation == admissionv1.Delete {
			q.Object = nil
		}
	}
	for _, name := range []string{"high", "low", "other"} {
		if !d.One(4) {
			q.store(draw(name), "PriorityClass")
		}
	}
	return q
}

func runtimeClassed(d Dice) *Request {
	q := podRequest(d)
	for _, name := range []string{"kata", "gvisor", "none"} {
		c := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "h"}
		if name != "none" && !d.One(4) {
			c.Overhead = &nodev1.Overhead{PodFixed: d.list("100m", "0.1", "1Gi")}
			if pod, ok := q.Object.(*corev1.Pod); ok && d.One(3) {
				c.Overhead.PodFixed = pod.Spec.Overhead
			}
		}
		if name != "none" && !d.One(4) {
			c.Scheduling = &nodev1.Scheduling{NodeSelector: d.labels(), Tolerations: Some(d, 4, d.toleration)}
		}
		q.store(c, "RuntimeClass")
	}
	return q
}
