// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namespaces are those in which requests are made, some of a kind.
const namespacesOfAKind = 5

var kindsOfNamespaces = []string{"plain", "limited", "selected", "tolerated", "secured"}

// store makes an object in both clusters, or in none, and reports which.
func (p *pairOfControllers) store(t *testing.T, o runtime.Object, r schema.GroupVersionResource, kind, namespace string) bool {
	t.Helper()
	o.GetObjectKind().SetGroupVersionKind(r.GroupVersion().WithKind(kind))
	var answers [2]answer
	for i, c := range p.clusters {
		list, err := c.try(t, []step{created(o, r, namespace, "")})
		if err != nil {
			t.Fatal(err)
		}
		answers[i] = list[0]
	}
	if answers[0].allowed() != answers[1].allowed() {
		t.Fatalf("%s: %v, %v", r.Resource, answers[0].status, answers[1].status)
	}
	return answers[0].allowed()
}

// storeWorld makes what controllers look at, drawn until the API server takes it.
func (p *pairOfControllers) storeWorld(t *testing.T, d sample.Dice) {
	t.Helper()
	for _, kind := range kindsOfNamespaces {
		for i := range namespacesOfAKind {
			p.storeNamespace(t, d, kind, fmt.Sprintf("%s-%d", kind, i))
		}
	}
	p.storeClasses(t, d)
	p.storeLimits(t, d)
}

// until draws until what is drawn is taken.
func until(t *testing.T, draw func() bool) {
	t.Helper()
	for range 200 {
		if draw() {
			return
		}
	}
	t.Fatal("nothing that is drawn is taken")
}

func (p *pairOfControllers) storeClasses(t *testing.T, d sample.Dice) {
	t.Helper()
	gold := map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	for _, s := range []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "silver"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "gold", Annotations: gold}, AllowVolumeExpansion: new(true)},
	} {
		s.Provisioner = "example.com/disk"
		until(t, func() bool {
			return p.store(t, s, storagev1.SchemeGroupVersion.WithResource("storageclasses"), "StorageClass", "")
		})
	}
	ingress := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}}}
	ingress.Spec.Controller = "example.com/ingress"
	until(t, func() bool {
		return p.store(t, ingress, networkingv1.SchemeGroupVersion.WithResource("ingressclasses"), "IngressClass", "")
	})
	for _, c := range []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000, PreemptionPolicy: new(corev1.PreemptNever)},
		{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 5, GlobalDefault: true},
	} {
		until(t, func() bool {
			return p.store(t, c, schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), "PriorityClass", "")
		})
	}
	for _, name := range []string{"kata", "gvisor", "none"} {
		until(t, func() bool {
			for _, o := range controllerOf("RuntimeClass").Random(d).Stored {
				if c := o.(*nodev1.RuntimeClass); c.Name == name && (name != "kata" || c.Overhead != nil && len(c.Overhead.PodFixed) > 0) {
					if c.Scheduling != nil {
						for i := range c.Scheduling.Tolerations {
							acceptToleration(&c.Scheduling.Tolerations[i])
						}
					}
					return p.store(t, c, nodev1.SchemeGroupVersion.WithResource("runtimeclasses"), "RuntimeClass", "")
				}
			}
			return false
		})
	}
}

func (p *pairOfControllers) storeLimits(t *testing.T, d sample.Dice) {
	t.Helper()
	for i := range namespacesOfAKind {
		namespace := fmt.Sprint("limited-", i)
		if limits := limitRanges[namespace]; limits != nil {
			until(t, func() bool {
				return p.store(t, limits, corev1.SchemeGroupVersion.WithResource("limitranges"), "LimitRange", namespace)
			})
			continue
		}
		until(t, func() bool {
			for _, o := range controllerOf("LimitRanger").Random(d).Stored {
				r := o.(*corev1.LimitRange)
				r.Name, r.Namespace = "limits", namespace
				if len(r.Spec.Limits) > 0 && p.store(t, r, corev1.SchemeGroupVersion.WithResource("limitranges"), "LimitRange", namespace) {
					return true
				}
			}
			return false
		})
	}
	p.storeNamespace(t, d, "plain", "known") // the last, which known waits for
	until(t, func() bool {
		return p.store(t, limitRanges["known"], corev1.SchemeGroupVersion.WithResource("limitranges"), "LimitRange", "known")
	})
}

// limitRanges are those of some namespaces: many of the others deny everything.
var limitRanges = map[string]*corev1.LimitRange{
	"limited-0": limitRange(corev1.LimitRangeItem{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: quantity("2"), corev1.ResourceMemory: quantity("2Gi")},
		DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: quantity("10m")}, Max: corev1.ResourceList{corev1.ResourceCPU: quantity("2G")},
	}, corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{corev1.ResourceStorage: quantity("2Gi")}}),
	"limited-1": limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceCPU: quantity("4")}}),
	"known":     limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: quantity("1")}}),
}

func limitRange(items ...corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: items}}
}

// selectors are those of some namespaces: of the others most cannot be read.
var selectors = map[string]string{"selected-0": "team=a", "selected-2": "node.kubernetes.io/pool=a"}

func controllerOf(name string) *sample.Controller {
	for i := range sample.Controllers {
		if sample.Controllers[i].Name == name {
			return &sample.Controllers[i]
		}
	}
	panic(name)
}

func (p *pairOfControllers) storeNamespace(t *testing.T, d sample.Dice, kind, name string) {
	t.Helper()
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	for range 200 {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
		var from string
		switch kind {
		case "secured":
			n.Labels = sample.Levels(d)
			if name == "secured-1" { // so that some are denied, whatever is drawn
				n.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
			}
		case "selected":
			from = "PodNodeSelector"
		case "tolerated":
			from = "PodTolerationRestriction"
		}
		if from != "" {
			for _, o := range controllerOf(from).Random(d).Stored {
				n.Annotations = o.(*corev1.Namespace).Annotations
			}
			if len(n.Annotations) == 0 {
				continue
			}
		}
		if selector := selectors[name]; selector != "" {
			n.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": selector}
		}
		if p.store(t, n, namespaces, "Namespace", "") {
			return
		}
	}
	t.Fatalf("no namespace %s is taken", name)
}

// known waits until controllers of both clusters know what was stored, by what they give
// to objects: the kind that was stored last, of each that they watch.
func (p *pairOfControllers) known(t *testing.T) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	accept(sample.NewDice(1, 1), "", claim, "known", "plain-0")
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
	ingress := &networkingv1.Ingress{}
	accept(sample.NewDice(1, 1), "", ingress, "known", "plain-0")
	pod := corev1.SchemeGroupVersion.WithResource("pods")
	for _, c := range p.clusters {
		for _, k := range []struct {
			object    runtime.Object
			resource  schema.GroupVersionResource
			kind      string
			namespace string
			path      string
			want      string
		}{
			{claim, corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "PersistentVolumeClaim", "plain-0", "spec.storageClassName", "gold"},
			{ingress, networkingv1.SchemeGroupVersion.WithResource("ingresses"), "Ingress", "plain-0", "spec.ingressClassName", "nginx"},
			{webPod("known"), pod, "Pod", "plain-0", "spec.priority", "5"},
			{webPod("known"), pod, "Pod", "known", "spec.containers", "cpu:1"},
		} {
			k.object.GetObjectKind().SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.kind))
			eventually(t, c.name+" gives "+k.path, func() error {
				answers, err := c.try(t, []step{created(k.object, k.resource, k.namespace, dryRun)})
				if err != nil {
					return err
				}
				got, _, _ := unstructured.NestedFieldNoCopy(answers[0].object, strings.Split(k.path, ".")...)
				if !strings.Contains(fmt.Sprint(got), k.want) {
					return fmt.Errorf("it is %v, %v", got, answers[0].status)
				}
				return nil
			})
		}
	}
}

func webPod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "c0", Image: "a"}}
	return p
}
