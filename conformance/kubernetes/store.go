// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/scheduling"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/client-go/tools/cache"
)

// store adds an object to the informer of its kind.
func store(f informers.SharedInformerFactory, raw json.RawMessage) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "Namespace":
		return add[corev1.Namespace](f.Core().V1().Namespaces().Informer(), raw)
	case "LimitRange":
		return add[corev1.LimitRange](f.Core().V1().LimitRanges().Informer(), raw)
	case "StorageClass":
		return add[storagev1.StorageClass](f.Storage().V1().StorageClasses().Informer(), raw)
	case "IngressClass":
		return add[networkingv1.IngressClass](f.Networking().V1().IngressClasses().Informer(), raw)
	case "PriorityClass":
		return add[schedulingv1.PriorityClass](f.Scheduling().V1().PriorityClasses().Informer(), raw)
	case "RuntimeClass":
		return add[nodev1.RuntimeClass](f.Node().V1().RuntimeClasses().Informer(), raw)
	}
	return fmt.Errorf("there is no informer of %s", kind.Kind)
}

func add[T any](i cache.SharedIndexInformer, raw json.RawMessage) error {
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return err
	}
	return i.GetStore().Add(object)
}

// sorted is a factory of informers whose lists are in the order of names. Where the first
// object counts, lists of informers have none.
type sorted struct {
	informers.SharedInformerFactory
}

// Core implements informers.SharedInformerFactory.
func (s sorted) Core() core.Interface { return sortedCore{s.SharedInformerFactory.Core()} }

// Scheduling implements informers.SharedInformerFactory.
func (s sorted) Scheduling() scheduling.Interface {
	return sortedScheduling{s.SharedInformerFactory.Scheduling()}
}

type sortedCore struct{ core.Interface }

func (s sortedCore) V1() coreinformers.Interface { return sortedCoreV1{s.Interface.V1()} }

type sortedCoreV1 struct{ coreinformers.Interface }

func (s sortedCoreV1) LimitRanges() coreinformers.LimitRangeInformer {
	return sortedRanges{s.Interface.LimitRanges()}
}

type sortedRanges struct {
	coreinformers.LimitRangeInformer
}

func (s sortedRanges) Lister() corelisters.LimitRangeLister {
	return rangeLister{s.LimitRangeInformer.Lister()}
}

type rangeLister struct{ corelisters.LimitRangeLister }

func (s rangeLister) LimitRanges(namespace string) corelisters.LimitRangeNamespaceLister {
	return namespaceRangeLister{s.LimitRangeLister.LimitRanges(namespace)}
}

type namespaceRangeLister struct {
	corelisters.LimitRangeNamespaceLister
}

func (s namespaceRangeLister) List(l labels.Selector) ([]*corev1.LimitRange, error) {
	return byName(s.LimitRangeNamespaceLister.List(l))
}

type sortedScheduling struct{ scheduling.Interface }

func (s sortedScheduling) V1() schedulinginformers.Interface {
	return sortedSchedulingV1{s.Interface.V1()}
}

type sortedSchedulingV1 struct{ schedulinginformers.Interface }

func (s sortedSchedulingV1) PriorityClasses() schedulinginformers.PriorityClassInformer {
	return sortedPriorities{s.Interface.PriorityClasses()}
}

type sortedPriorities struct {
	schedulinginformers.PriorityClassInformer
}

func (s sortedPriorities) Lister() schedulinglisters.PriorityClassLister {
	return priorityLister{s.PriorityClassInformer.Lister()}
}

type priorityLister struct {
	schedulinglisters.PriorityClassLister
}

func (s priorityLister) List(l labels.Selector) ([]*schedulingv1.PriorityClass, error) {
	return byName(s.PriorityClassLister.List(l))
}

func byName[T metav1.Object](list []T, err error) ([]T, error) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list, err
}
