// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// store holds the labels of the namespaces that the watch brings. It is the
// reflector's cache.ReflectorStore. Most namespaces of a cluster have the few
// labels that selectors name in common, so each set of labels is kept once.
type store struct {
	mu     sync.RWMutex
	byName map[string]*labelSet
	sets   map[string]*labelSet // by key
}

// labelSet is labels that some namespaces have.
type labelSet struct {
	labels map[string]string // read only
	key    string            // the labels as text
	uses   int
}

func (s *store) namespace(name string) (labels map[string]string, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	set, ok := s.byName[name]
	if !ok {
		return nil, false
	}
	return set.labels, true
}

func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byName)
}

// put makes the labels those of the namespace. Beyond maxNamespaces a new one is
// not kept: it is asked for. The store is locked.
func (s *store) put(name string, labels map[string]string) {
	before, known := s.byName[name]
	if !known && len(s.byName) >= maxNamespaces {
		return
	}
	key := textOf(labels)
	set := s.sets[key]
	if set == nil {
		set = &labelSet{labels: labels, key: key}
		s.sets[key] = set
	}
	set.uses++
	s.byName[name] = set
	if known {
		s.leave(before)
	}
}

// leave forgets a set that no namespace has any more. The store is locked.
func (s *store) leave(set *labelSet) {
	if set.uses--; set.uses == 0 {
		delete(s.sets, set.key)
	}
}

// textOf is the same for the same labels, and for no others.
func textOf(labels map[string]string) string {
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text = strconv.AppendQuote(strconv.AppendQuote(text, key), labels[key])
	}
	return string(text)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	o, err := metadataOf(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepare(0)
	s.put(o.Name, o.Labels)
	return nil
}

// prepare makes the tables, if there are none. The store is locked.
func (s *store) prepare(size int) {
	if s.byName == nil {
		s.byName, s.sets = make(map[string]*labelSet, size), map[string]*labelSet{}
	}
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
	if set, ok := s.byName[o.Name]; ok {
		delete(s.byName, o.Name)
		s.leave(set)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, _ string) error {
	var next store
	next.prepare(len(objects))
	for _, object := range objects {
		o, err := metadataOf(object)
		if err != nil {
			return err
		}
		next.put(o.Name, o.Labels)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName, s.sets = next.byName, next.sets
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
