// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"math"
	"math/bits"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// ClusterResourceOverride sets what containers request as a share of their limits, and their
// limits of CPU by those of memory: so a platform decides how far nodes are overcommitted.
// It is OpenShift's. What LimitRanges say of containers is kept.
func ClusterResourceOverride() plugin.Plugin {
	rules := []admissionregistrationv1.RuleWithOperations{plugin.Rule("", "v1", []string{"pods"}, "CREATE")}
	p := plugin.New("ClusterResourceOverride", rules, func(c *resourceOverride) (any, field.ErrorList) { return c, c.validate() })
	p.Lists = []schema.GroupVersionResource{namespaces, limitRanges}
	return p
}

// resourceOverride is the configuration, OpenShift's ClusterResourceOverrideConfig. 0 leaves
// a value as it is.
type resourceOverride struct {
	metav1.TypeMeta `json:",inline"`

	CPULimitToMemory     int64 `json:"limitCPUToMemoryPercent"` // 100: a CPU for each GiB
	CPURequestToLimit    int64 `json:"cpuRequestToLimitPercent"`
	MemoryRequestToLimit int64 `json:"memoryRequestToLimitPercent"`
}

func (c *resourceOverride) validate() field.ErrorList {
	errs := validateType(c.TypeMeta, "ClusterResourceOverrideConfig", "v1", "autoscaling.openshift.io/v1")
	if c.CPULimitToMemory == 0 && c.CPURequestToLimit == 0 && c.MemoryRequestToLimit == 0 {
		errs = append(errs, field.Required(nil, "plugin enabled but no percentages were specified"))
	}
	if c.CPULimitToMemory < 0 {
		errs = append(errs, field.Invalid(field.NewPath("limitCPUToMemoryPercent"), c.CPULimitToMemory, "must be positive"))
	}
	if c.CPURequestToLimit < 0 || c.CPURequestToLimit > 100 {
		errs = append(errs, field.Invalid(field.NewPath("cpuRequestToLimitPercent"), c.CPURequestToLimit, "must be between 0 and 100"))
	}
	if c.MemoryRequestToLimit < 0 || c.MemoryRequestToLimit > 100 {
		errs = append(errs, field.Invalid(field.NewPath("memoryRequestToLimitPercent"), c.MemoryRequestToLimit, "must be between 0 and 100"))
	}
	return errs
}

var limitRanges = corev1.SchemeGroupVersion.WithResource("limitranges")

// What namespaces say of the plugin: "true", or nothing, leaves it on. The label is that of
// OpenShift since 4.5, the annotations are those before.
const overrideLabel = "clusterresourceoverrides.admission.autoscaling.openshift.io/enabled"

var overrideAnnotations = []string{"autoscaling.openshift.io/cluster-resource-override-enabled", "quota.openshift.io/cluster-resource-override-enabled"}

func (c *resourceOverride) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if a.Operation() != admissionv1.Create {
		return plugin.Answer{}, nil
	}
	pod, err := podOf(a)
	if pod == nil {
		return plugin.Answer{}, err
	}
	namespace, err := namespaceOf(a)
	switch {
	case err != nil:
		return plugin.Answer{}, err
	case namespace == nil:
		return plugin.Answer{}, unknownNamespace(a)
	case optsOut(namespace):
		return plugin.Answer{}, nil
	}
	ranges, err := plugin.List[corev1.LimitRange](a, limitRanges, a.Namespace())
	if err != nil {
		return plugin.Answer{}, err
	}
	cpu := boundsOf(ranges, corev1.ResourceCPU, resource.MustParse("1m"))
	memory := boundsOf(ranges, corev1.ResourceMemory, resource.MustParse("1Mi"))
	var answer plugin.Answer
	visitContainers(&pod.Spec, func(container *corev1.Container, path []any) {
		if path[1] == "ephemeralContainers" {
			return
		}
		w := resourceWriter{&answer, path, &container.Resources}
		c.override(&container.Resources, cpu, memory, w.set)
	})
	return answer, nil
}

func optsOut(namespace *corev1.Namespace) bool {
	if value, ok := namespace.Labels[overrideLabel]; ok && value != "true" {
		return true
	}
	for _, key := range overrideAnnotations {
		if value, ok := namespace.Annotations[key]; ok && value != "true" {
			return true
		}
	}
	return false
}

// override calls set with what a container gets. CPU is requested of the limit that memory
// has set.
func (c *resourceOverride) override(has *corev1.ResourceRequirements, cpu, memory bounds, set func(list string, name corev1.ResourceName, q resource.Quantity)) {
	memoryLimit, limited := has.Limits[corev1.ResourceMemory]
	if limited && c.MemoryRequestToLimit != 0 {
		amount := percentOf(memoryLimit.Value(), c.MemoryRequestToLimit)
		unit := int64(1000 * 1000)
		if memoryLimit.Format == resource.BinarySI {
			unit = 1024 * 1024
		}
		set("requests", corev1.ResourceMemory, memory.clamp(resource.NewQuantity(amount-amount%unit, memoryLimit.Format)))
	}
	cpuLimit, cpuLimited := has.Limits[corev1.ResourceCPU]
	if limited && c.CPULimitToMemory != 0 {
		cpuLimit, cpuLimited = cpu.clamp(resource.NewMilliQuantity(cpuOf(memoryLimit.Value(), c.CPULimitToMemory), resource.DecimalSI)), true
		set("limits", corev1.ResourceCPU, cpuLimit)
	}
	if cpuLimited && c.CPURequestToLimit != 0 {
		amount := percentOf(cpuLimit.MilliValue(), c.CPURequestToLimit)
		set("requests", corev1.ResourceCPU, cpu.clamp(resource.NewMilliQuantity(amount, cpuLimit.Format)))
	}
}

// percentOf is a share, of at most all, rounded down.
func percentOf(value, percent int64) int64 { return value/100*percent + value%100*percent/100 }

// cpuOf is thousandths of a CPU for so many bytes; the most that there is where it is more.
func cpuOf(memory, percent int64) int64 {
	if memory <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(memory), uint64(percent)*10)
	if high >= 1<<29 || uint64(percent) > math.MaxUint64/10 {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, 1<<30)
	return int64(quotient)
}

// bounds are what containers of a namespace may have of a resource. Without a maximum there
// is none.
type bounds struct{ least, most *resource.Quantity }

// boundsOf are the widest bounds of all LimitRanges.
func boundsOf(ranges []*corev1.LimitRange, name corev1.ResourceName, least resource.Quantity) bounds {
	var b bounds
	for _, r := range ranges {
		for i := range r.Spec.Limits {
			item := &r.Spec.Limits[i]
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			if q, ok := item.Min[name]; ok && isComputable(q) && (b.least == nil || q.Cmp(*b.least) < 0) {
				b.least = &q
			}
			if q, ok := item.Max[name]; ok && isComputable(q) && (b.most == nil || q.Cmp(*b.most) > 0) {
				b.most = &q
			}
		}
	}
	if b.least == nil {
		b.least = &least
	}
	return b
}

func (b bounds) clamp(q *resource.Quantity) resource.Quantity {
	if q.Cmp(*b.least) < 0 {
		q = b.least
	}
	if b.most != nil && q.Cmp(*b.most) > 0 {
		q = b.most
	}
	return q.DeepCopy()
}

// resourceWriter writes resources of one container into an answer.
type resourceWriter struct {
	answer *plugin.Answer
	path   []any // of the container
	has    *corev1.ResourceRequirements
}

// set sets a resource, unless it has that value already.
func (w *resourceWriter) set(list string, name corev1.ResourceName, q resource.Quantity) {
	values := w.has.Limits
	if list == "requests" {
		values = w.has.Requests
	}
	if old, ok := values[name]; ok && isComputable(old) && old.Cmp(q) == 0 {
		return
	}
	path := append(w.path[:len(w.path):len(w.path)], "resources", list)
	if values == nil { // then it is not there, and these are requests
		w.answer.Patch = append(w.answer.Patch, plugin.Add(corev1.ResourceList{}, path...))
		w.has = &corev1.ResourceRequirements{Limits: w.has.Limits, Requests: corev1.ResourceList{}}
	}
	w.answer.Patch = append(w.answer.Patch, plugin.Add(q, append(path, string(name))...))
}
