// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace is what is kept of one. The maps are read only.
type Namespace struct {
	Labels      map[string]string
	Annotations map[string]string // without kubectl's copy of the object
}

// namespaceOf keeps what is asked for and nothing else: managedFields alone are
// many times as much.
func namespaceOf(o *metav1.PartialObjectMetadata) Namespace {
	delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
	return Namespace{Labels: o.Labels, Annotations: o.Annotations}
}

// store holds the namespaces that the watch brings. It is the reflector's
// cache.ReflectorStore; the objects are the reflector's no longer.
type store struct {
	mu     sync.RWMutex
	byName map[string]Namespace
}

func (s *store) namespace(name string) (Namespace, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, ok := s.byName[name]
	return n, ok
}

func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byName)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	o, err := metadataOf(object)
	if err != nil {
		return err
	}
	n := namespaceOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]Namespace{}
	}
	s.byName[o.Name] = n
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	o, err := metadataOf(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, o.Name)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, _ string) error {
	byName := make(map[string]Namespace, len(objects))
	for _, object := range objects {
		o, err := metadataOf(object)
		if err != nil {
			return err
		}
		byName[o.Name] = namespaceOf(o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName = byName
	return nil
}

// Resync implements cache.ReflectorStore. There is nothing to do again.
func (s *store) Resync() error { return nil }

func metadataOf(object any) (*metav1.PartialObjectMetadata, error) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("the API sent a %T where the metadata of a namespace was expected", object)
	}
	return o, nil
}
