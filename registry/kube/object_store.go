// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/admission-dispatcher/dispatcher/hook"
)

const (
	// maxObjects bounds how many objects of a resource are known by name, and
	// maxStored what those take that are kept (item.weight), of one cluster.
	maxObjects = 20_000
	maxStored  = 16 << 20
)

// objectStore holds the objects that a watch brings. It is the reflector's
// cache.ReflectorStore. What there is no room for it knows by name, so that nobody
// takes it for absent.
type objectStore struct {
	mu      sync.RWMutex
	shelves map[string]*shelf // by namespace
	all     []*hook.Stored    // in order; nil: to be put together when somebody asks
	objects int               // that are known by name
	unkept  int               // of these
	weight  int               // of the others
	lost    bool              // there are some that are not even known by name
	crowded bool              // there was no room for some
}

// shelf is the objects of one namespace.
type shelf struct {
	byName map[string]entry
	sorted []*hook.Stored // by name; nil: to be sorted when somebody asks
	unkept int
}

type entry struct {
	stored  *hook.Stored // nil: it is not kept
	weight  int
	version string // as the API numbers it
}

// object returns what is kept; false: there is none, or it is not kept.
func (s *objectStore) object(namespace, name string) (stored *hook.Stored, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := s.shelves[namespace]
	if at == nil {
		return nil, false
	}
	stored = at.byName[name].stored
	return stored, stored != nil
}

// list returns the objects of a namespace, or with "" all, in order; false: not all
// are kept. It is read only.
func (s *objectStore) list(namespace string) (list []*hook.Stored, whole bool) {
	s.mu.RLock()
	list, whole, made := s.listed(namespace)
	s.mu.RUnlock()
	if made {
		return list, whole
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.shelves[namespace]; namespace != "" && at != nil {
		at.sort()
	} else if namespace == "" {
		s.sort()
	}
	list, whole, _ = s.listed(namespace)
	return list, whole
}

// listed is list for what has been put in order. The store is locked.
func (s *objectStore) listed(namespace string) (list []*hook.Stored, whole, made bool) {
	at := s.shelves[namespace]
	switch {
	case s.lost:
		return nil, false, true
	case namespace == "":
		return s.all, s.unkept == 0, s.unkept > 0 || s.all != nil
	case at == nil:
		return nil, true, true
	}
	return at.sorted, at.unkept == 0, at.unkept > 0 || at.sorted != nil
}

// sort puts all objects in order. The store is locked.
func (s *objectStore) sort() {
	s.all = make([]*hook.Stored, 0, s.objects)
	for _, namespace := range slices.Sorted(maps.Keys(s.shelves)) {
		at := s.shelves[namespace]
		at.sort()
		s.all = append(s.all, at.sorted...)
	}
}

func (at *shelf) sort() {
	if at.sorted != nil {
		return
	}
	at.sorted = make([]*hook.Stored, 0, len(at.byName))
	for _, name := range slices.Sorted(maps.Keys(at.byName)) {
		if stored := at.byName[name].stored; stored != nil {
			at.sorted = append(at.sorted, stored)
		}
	}
}

// put makes o the object of its name. The store is locked.
func (s *objectStore) put(o *item) {
	if o.rest {
		s.lost, s.crowded = true, true
		return
	}
	s.take(o.Namespace, o.Name)
	if s.objects >= maxObjects {
		s.lost, s.crowded = true, true
		return
	}
	kept := entry{o.stored, o.weight, o.ResourceVersion}
	if kept.stored != nil && s.weight+kept.weight > maxStored {
		kept.stored = nil
	}
	at := s.shelves[o.Namespace]
	if at == nil {
		at = &shelf{byName: map[string]entry{}}
		s.shelves[o.Namespace] = at
	}
	s.objects++
	at.sorted, s.all = nil, nil
	if kept.stored == nil {
		s.unkept++
		at.unkept++
		s.crowded = s.crowded || kept.weight != tooHeavy
	} else {
		s.weight += kept.weight
	}
	at.byName[o.Name] = kept
}

// keep keeps the versions of before that are there again, with what was made of them.
// Both stores are locked.
func (s *objectStore) keep(before *objectStore) {
	for namespace, at := range s.shelves {
		known := before.shelves[namespace]
		if known == nil {
			continue
		}
		for name, e := range at.byName {
			if k := known.byName[name]; k.stored != nil && e.stored != nil && k.version == e.version && e.version != "" {
				s.weight += k.weight - e.weight
				at.byName[name] = k
			}
		}
	}
}

// take takes an object out, if it is there. The store is locked.
func (s *objectStore) take(namespace, name string) {
	at := s.shelves[namespace]
	if at == nil {
		return
	}
	before, known := at.byName[name]
	if !known {
		return
	}
	s.objects--
	if before.stored == nil {
		s.unkept--
		at.unkept--
	} else {
		s.weight -= before.weight
	}
	delete(at.byName, name)
	at.sorted, s.all = nil, nil
	if len(at.byName) == 0 {
		delete(s.shelves, namespace)
	}
}

// again reports whether objects may be kept now for which there was no room: those
// that are there take much less.
func (s *objectStore) again() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.crowded && s.objects <= maxObjects/2 && s.weight <= maxStored/2
}

// Add implements cache.ReflectorStore.
func (s *objectStore) Add(object any) error {
	o, err := itemOf(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shelves == nil {
		s.shelves = map[string]*shelf{}
	}
	s.put(o)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *objectStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *objectStore) Delete(object any) error {
	o, err := itemOf(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(o.Namespace, o.Name)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *objectStore) Replace(objects []any, _ string) error {
	next := objectStore{shelves: map[string]*shelf{}}
	for _, object := range objects {
		o, err := itemOf(object)
		if err != nil {
			return err
		}
		next.put(o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next.keep(s)
	s.shelves, s.all, s.objects, s.unkept, s.weight = next.shelves, nil, next.objects, next.unkept, next.weight
	s.lost, s.crowded = next.lost, next.crowded
	return nil
}

// Resync implements cache.ReflectorStore. There is nothing to do again.
func (s *objectStore) Resync() error { return nil }

// into fills in what is kept.
func (s *objectStore) into(status *Status) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	status.Objects, status.Unkept, status.Bytes, status.Lost = s.objects, s.unkept, s.weight, s.lost
}

func itemOf(object any) (*item, error) {
	o, ok := object.(*item)
	if !ok {
		return nil, fmt.Errorf("the API sent a %T where an object was expected", object)
	}
	return o, nil
}
