// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// maxViolations is how many a denial tells at most, which is more than a message has room
// for.
const maxViolations = 128

// violations are what an object violates of a LimitRange, each once.
type violations struct {
	errs []error
	seen map[string]bool
}

func (v *violations) add(err error) {
	if err == nil || v.seen[err.Error()] {
		return
	}
	if v.seen == nil {
		v.seen = map[string]bool{}
	}
	v.seen[err.Error()] = true
	v.errs = append(v.errs, err)
}

func (v *violations) full() bool { return len(v.errs) == maxViolations }

// all are what the list of requests and the list of limits violate of one limit.
func (v *violations) all(l *corev1.LimitRangeItem, requests, limits corev1.ResourceList) {
	for _, kind := range []struct {
		bounds corev1.ResourceList
		check  func(*bound, corev1.ResourceList, corev1.ResourceList) error
	}{{l.Min, (*bound).min}, {l.Max, (*bound).max}, {l.MaxLimitRequestRatio, (*bound).ratio}} {
		for _, name := range slices.Sorted(maps.Keys(kind.bounds)) {
			if v.full() {
				return
			}
			v.add(kind.check(&bound{l.Type, name, kind.bounds[name]}, requests, limits))
		}
	}
}

// podWithin returns what a pod violates of a LimitRange; nil: nothing.
func podWithin(pod *usage, r *corev1.LimitRange) error {
	var v violations
	for i := range r.Spec.Limits {
		switch l := &r.Spec.Limits[i]; l.Type {
		case corev1.LimitTypeContainer:
			for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
				for i := range containers {
					v.all(l, containers[i].Resources.Requests, containers[i].Resources.Limits)
				}
			}
		case corev1.LimitTypePod:
			requests, limits := pod.sums()
			if !areComputable(requests, limits) {
				return errTooLarge
			}
			v.all(l, requests, limits)
		}
	}
	return aggregate(v.errs)
}

// claimWithin returns what a claim violates of a LimitRange; nil: nothing. A claim has
// requests only.
func claimWithin(claim *corev1.PersistentVolumeClaim, r *corev1.LimitRange) error {
	var v violations
	requests := claim.Spec.Resources.Requests
	for i := range r.Spec.Limits {
		l := &r.Spec.Limits[i]
		if l.Type != corev1.LimitTypePersistentVolumeClaim {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(l.Min)) {
			v.add((&bound{l.Type, name, l.Min[name]}).min(requests, nil))
		}
		for _, name := range slices.Sorted(maps.Keys(l.Max)) {
			v.add((&bound{l.Type, name, l.Max[name]}).maxRequest(requests))
		}
	}
	return aggregate(v.errs)
}

// aggregate is an error of nil if there are none.
func aggregate(errs []error) error {
	if a := utilerrors.NewAggregate(errs); a != nil {
		return a
	}
	return nil
}

// bound is one quantity of a limit.
type bound struct {
	of       corev1.LimitType
	name     corev1.ResourceName
	quantity resource.Quantity
}

// values are quantities as numbers of one unit: thousandths, if all of them have room.
func values(quantities ...resource.Quantity) []int64 {
	out := make([]int64, len(quantities))
	fine := true
	for i := range quantities {
		out[i] = quantities[i].Value()
		fine = fine && out[i] <= resource.MaxMilliValue
	}
	for i := range quantities {
		if fine {
			out[i] = quantities[i].MilliValue()
		}
	}
	return out
}

func (b *bound) min(requests, limits corev1.ResourceList) error {
	request, requested := requests[b.name]
	limit, limited := limits[b.name]
	v := values(request, limit, b.quantity)
	switch {
	case !requested:
		return fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", b.name, b.of, b.quantity.String())
	case v[0] < v[2]:
		return fmt.Errorf("minimum %s usage per %s is %s, but request is %s", b.name, b.of, b.quantity.String(), request.String())
	case limited && v[1] < v[2]:
		return fmt.Errorf("minimum %s usage per %s is %s, but limit is %s", b.name, b.of, b.quantity.String(), limit.String())
	}
	return nil
}

func (b *bound) max(requests, limits corev1.ResourceList) error {
	request, requested := requests[b.name]
	limit, limited := limits[b.name]
	v := values(request, limit, b.quantity)
	switch {
	case !limited:
		return fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", b.name, b.of, b.quantity.String())
	case v[1] > v[2]:
		return fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", b.name, b.of, b.quantity.String(), limit.String())
	case requested && v[0] > v[2]:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", b.name, b.of, b.quantity.String(), request.String())
	}
	return nil
}

// maxRequest is max where there are no limits.
func (b *bound) maxRequest(requests corev1.ResourceList) error {
	request, requested := requests[b.name]
	v := values(request, b.quantity)
	switch {
	case !requested:
		return fmt.Errorf("maximum %s usage per %s is %s.  No request is specified", b.name, b.of, b.quantity.String())
	case v[0] > v[1]:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", b.name, b.of, b.quantity.String(), request.String())
	}
	return nil
}

// ratio holds how many times its request a limit is.
func (b *bound) ratio(requests, limits corev1.ResourceList) error {
	v := values(requests[b.name], limits[b.name], b.quantity)
	const prefix = "%s max limit to request ratio per %s is %s, but "
	if v[0] == 0 {
		return fmt.Errorf(prefix+"no request is specified or request is 0", b.name, b.of, b.quantity.String())
	}
	if v[1] == 0 {
		return fmt.Errorf(prefix+"no limit is specified or limit is 0", b.name, b.of, b.quantity.String())
	}
	provided := float64(v[1]) / float64(v[0])
	scaled, most := provided, float64(b.quantity.Value())
	if b.quantity.Value() <= resource.MaxMilliValue {
		scaled, most = provided*1000, float64(b.quantity.MilliValue())
	}
	if scaled > most {
		return fmt.Errorf(prefix+"provided ratio is %f", b.name, b.of, b.quantity.String(), provided)
	}
	return nil
}
