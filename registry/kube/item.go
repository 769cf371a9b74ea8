// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// item is an object as it was read.
type item struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	stored *hook.Stored // nil: it is not kept
	weight int
	rest   bool // it stands for all objects of a list for which there was no room
}

// DeepCopyObject implements runtime.Object.
func (i *item) DeepCopyObject() runtime.Object {
	other := *i
	return &other
}

// items is a list of objects.
type items struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*item
}

// DeepCopyObject implements runtime.Object.
func (l *items) DeepCopyObject() runtime.Object {
	other := *l
	return &other
}

const (
	// An object takes its bytes, and what is made of it when it is decoded, which is
	// bounded by its values: a hostile API would send few bytes that decode to many.
	itemWeight  = 512
	valueWeight = 64
	// maxWeight bounds one object that is kept; tooHeavy is one that never is.
	maxWeight = 4 << 20
	tooHeavy  = maxWeight + 1
	// maxName is the longest name of an object.
	maxName = 253
)

// objectReader reads objects of any kind, and keeps them without managedFields.
type objectReader struct {
	*document
	kept kept
	// apiVersion and kind are those of the items of a list, which need not say them.
	apiVersion, kind string
}

// read reads an object, an event's Status or a bookmark.
func (r *objectReader) read() (*item, error) {
	o := &item{}
	r.kept.again()
	r.kept.add('{')
	err := r.object(func(key string) error { return r.member(o, key) })
	if err != nil {
		return nil, err
	}
	if o.Kind == "" && r.kind != "" {
		r.kept.key("kind")
		r.kept.text(r.kind)
	}
	if o.APIVersion == "" && r.apiVersion != "" {
		r.kept.key("apiVersion")
		r.kept.text(r.apiVersion)
	}
	r.kept.add('}')
	o.weight = itemWeight + len(r.kept.json) + valueWeight*r.kept.values
	if r.kept.over || o.weight > maxWeight {
		o.weight = tooHeavy
		return o, nil
	}
	if !json.Valid(r.kept.json) {
		return nil, errNoJSON
	}
	o.stored = &hook.Stored{Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, JSON: slices.Clone(r.kept.json)}
	return o, nil
}

func (r *objectReader) member(o *item, key string) error {
	switch key {
	case "": // or one that is longer than any that is looked for
		r.kept.over = true
		return r.skip()
	case "metadata":
		r.kept.key(key)
		r.kept.count()
		r.kept.add('{')
		defer r.kept.add('}')
		return r.object(func(key string) error { return r.metadata(o, key) })
	case "apiVersion":
		return r.string(&o.APIVersion, key, maxKey)
	case "kind":
		return r.string(&o.Kind, key, maxKey)
	}
	r.kept.key(key)
	return r.copy(&r.kept)
}

func (r *objectReader) metadata(o *item, key string) error {
	switch key {
	case "":
		r.kept.over = true
		return r.skip()
	case "managedFields":
		return r.skip()
	case "name":
		return r.string(&o.Name, key, maxName)
	case "namespace":
		return r.string(&o.Namespace, key, maxValue)
	case "resourceVersion":
		return r.string(&o.ResourceVersion, key, maxToken)
	case "labels":
		r.kept.key(key)
		r.kept.count()
		r.kept.add('{')
		defer r.kept.add('}')
		return r.object(func(key string) error { return r.label(o, key) })
	}
	r.kept.key(key)
	return r.copy(&r.kept)
}

func (r *objectReader) label(o *item, key string) error {
	var value string
	if err := r.string(&value, key, maxValue); err != nil {
		return err
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[key] = value
	return nil
}

// string reads a member that is a string of at most limit bytes, and keeps it.
func (r *objectReader) string(into *string, key string, limit int) error {
	text, whole, err := r.text(limit)
	if err != nil {
		return err
	}
	if !whole || key == "" {
		return errNoJSON // no object of an API has it
	}
	*into = text
	r.kept.key(key)
	r.kept.text(text)
	return nil
}

// list reads a list, and of its items those for which there is room. Of others it
// keeps the names.
func (r *objectReader) list(room *room) (*items, error) {
	list, more := &items{}, false
	err := r.object(func(key string) (err error) {
		switch key {
		case "apiVersion":
			r.apiVersion, _, err = r.text(maxKey)
			return err
		case "kind":
			r.kind, _, err = r.text(maxKey)
			r.kind = strings.TrimSuffix(r.kind, "List")
			return err
		case "metadata":
			return r.listMeta(&list.ListMeta)
		case "items":
			return r.array(func() error {
				if room.objects == 0 {
					more = true
					return r.skip()
				}
				return r.item(list, room)
			})
		}
		return r.skip()
	})
	if more {
		list.Continue = ""
		list.Items = append(list.Items, &item{rest: true})
	}
	return list, err
}

// item reads one item of a list.
func (r *objectReader) item(list *items, room *room) error {
	o, err := r.read()
	if err != nil {
		return err
	}
	if o.Name == "" {
		return errNoJSON
	}
	room.objects--
	if o.stored != nil && o.weight > room.weight {
		o.stored = nil
	}
	if o.stored != nil {
		room.weight -= o.weight
	}
	list.Items = append(list.Items, o)
	return nil
}

// next reads the next event of a watch; io.EOF: there is none.
func (r *objectReader) next() (event, error) {
	another, err := r.another()
	if err != nil {
		return event{}, err
	}
	if !another {
		return event{}, io.EOF
	}
	var (
		e event
		o *item
	)
	err = r.object(func(key string) (err error) {
		switch key {
		case "type":
			var text string
			text, _, err = r.text(maxKey)
			e.Type = watch.EventType(text)
			return err
		case "object":
			o, err = r.read()
			return err
		}
		return r.skip()
	})
	switch {
	case err != nil:
		return event{}, err
	case o == nil, o.Name == "" && e.Type != watch.Bookmark && e.Type != watch.Error:
		return event{}, errNoJSON
	case e.Type == watch.Error:
		e.Object, err = r.status(o)
		return e, err
	}
	e.Object = o
	return e, nil
}

// status returns what the object of an error says.
func (r *objectReader) status(o *item) (*metav1.Status, error) {
	var said struct {
		Code    int32
		Reason  metav1.StatusReason
		Message string
	}
	if o.stored == nil || json.Unmarshal(o.stored.JSON, &said) != nil {
		return nil, errNoJSON
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: said.Code, Reason: said.Reason, Message: clean(said.Message)}, nil
}
