// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
)

// maxHeld bounds what is held of one resource, in bytes of JSON. Of objects beyond it
// only the names are kept.
const maxHeld = 64 << 20

// item is an object of the API as it is held: as JSON, which takes a fifth of what the
// tree of it takes.
type item struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	json []byte // without status and versions; nil: there was no room
	// status is what the API has in that field, at most maxStatus. A change of it alone
	// is no change of the object.
	status json.RawMessage
}

// maxStatus bounds what is kept of a status, in bytes.
const maxStatus = 32 << 10

// same reports whether what is judged of two items is the same.
func (i *item) same(other *item) bool {
	return other != nil && i.json != nil && bytes.Equal(i.json, other.json) && i.UID == other.UID
}

// attested reports whether the object's status says that it was accepted as it stands.
func (i *item) attested() bool {
	var s v1alpha1.Status
	if len(i.status) == 0 || json.Unmarshal(i.status, &s) != nil {
		return false
	}
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAccepted)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == i.Generation
}

// DeepCopyObject implements runtime.Object. An item never changes.
func (i *item) DeepCopyObject() runtime.Object { return i }

func (i *item) size() int { return len(i.json) + len(i.status) }

// itemList is a page of a list.
type itemList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []*item
}

// DeepCopyObject implements runtime.Object. A page never changes.
func (l *itemList) DeepCopyObject() runtime.Object { return l }

// itemOf drops of an object what nobody needs.
func itemOf(u *unstructured.Unstructured) (*item, error) {
	it := &item{}
	it.Name, it.UID, it.ResourceVersion, it.Generation = u.GetName(), u.GetUID(), u.GetResourceVersion(), u.GetGeneration()
	it.CreationTimestamp, it.Annotations, it.Labels = u.GetCreationTimestamp(), u.GetAnnotations(), u.GetLabels()
	var err error
	if status, ok := u.Object["status"]; ok {
		if it.status, err = json.Marshal(status); err != nil {
			return nil, err
		}
		if len(it.status) > maxStatus {
			it.status = nil
		}
	}
	u.SetManagedFields(nil)
	for _, path := range [][]string{{"status"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}} {
		unstructured.RemoveNestedField(u.Object, path...)
	}
	if it.json, err = u.MarshalJSON(); err != nil {
		return nil, err
	}
	return it, nil
}

// data returns the values of a Secret or a ConfigMap.
func (i *item) data() (map[string][]byte, error) {
	var head struct {
		Kind       string            `json:"kind"`
		Data       json.RawMessage   `json:"data"`
		BinaryData map[string][]byte `json:"binaryData"`
	}
	if err := json.Unmarshal(i.json, &head); err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	if len(head.Data) == 0 {
		return head.BinaryData, nil
	}
	if head.Kind == secretKind {
		return values, json.Unmarshal(head.Data, &values)
	}
	var texts map[string]string
	if err := json.Unmarshal(head.Data, &texts); err != nil {
		return nil, err
	}
	for key, text := range texts {
		values[key] = []byte(text)
	}
	for key, value := range head.BinaryData {
		values[key] = value
	}
	return values, nil
}

// resource is one of those that are mirrored.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

const (
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
	registryKind  = "Registry"
)

// resources are those that are watched.
func resources() []resource {
	ours := func(plural, kind string) resource {
		return resource{schema.GroupVersionResource{Group: "dispatcher.dev", Version: "v1alpha1", Resource: plural}, kind, false}
	}
	core := func(plural, kind string) resource {
		return resource{schema.GroupVersionResource{Version: "v1", Resource: plural}, kind, true}
	}
	return []resource{
		ours("clusters", "Cluster"), ours("webhookbindings", "WebhookBinding"), ours("webhookconfigurations", "WebhookConfiguration"),
		ours("plugins", "Plugin"), ours("registries", registryKind), core("configmaps", configMapKind), core("secrets", secretKind),
	}
}

// store holds the objects of one resource. It is a cache.ReflectorStore.
type store struct {
	resource
	changed func() // is called, outside the lock, when something has

	mu     sync.Mutex
	items  map[string]*item
	held   int // bytes
	synced bool
	heard  time.Time // when the API last answered; zero: it has not yet
	err    error     // why the last list or watch failed; nil: it did not
}

// put enters an item, if there is room.
func (s *store) put(it *item) {
	s.drop(it.Name)
	if s.held+it.size() > maxHeld {
		kept := *it
		kept.json, kept.status = nil, nil
		it = &kept
	}
	s.held += it.size()
	s.items[it.Name] = it
}

func (s *store) drop(name string) {
	if had := s.items[name]; had != nil {
		s.held -= had.size()
		delete(s.items, name)
	}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error {
	it, ok := obj.(*item)
	if !ok {
		return fmt.Errorf("%T is no item", obj)
	}
	s.mu.Lock()
	news := !it.same(s.items[it.Name])
	s.put(it)
	s.mu.Unlock()
	if news {
		s.changed()
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	if it, ok := obj.(*item); ok {
		s.do(func() { s.drop(it.Name) })
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(list []any, _ string) error {
	s.do(func() {
		s.items, s.held, s.synced, s.err, s.heard = map[string]*item{}, 0, true, nil, stamp()
		for _, obj := range list {
			if it, ok := obj.(*item); ok {
				s.put(it)
			}
		}
	})
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) do(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	s.changed()
}

// tried notes how a list or a watch began.
func (s *store) tried(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.heard = stamp()
	}
}
