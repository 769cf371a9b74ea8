// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// namespaceReader reads Namespaces, or what PartialObjectMetadata has of them, and
// keeps the labels that somebody looks at.
type namespaceReader struct {
	*document
	keys map[string]string // of labels that are kept: each to itself, so that the text is shared
}

// namespace reads one.
func (r namespaceReader) namespace() (*metav1.PartialObjectMetadata, error) {
	var o object
	err := r.object(func(key string) error { return r.member(&o, key) })
	return &o.PartialObjectMetadata, err
}

// object is what may stand in a watch's event: a Namespace or a Status.
type object struct {
	metav1.PartialObjectMetadata
	status metav1.Status
}

func (r namespaceReader) member(o *object, key string) (err error) {
	switch key {
	case "metadata":
		return r.object(func(key string) error { return r.metadata(o, key) })
	case "code":
		var code int
		code, err = r.number()
		o.status.Code = int32(code)
	case "reason":
		var reason string
		reason, _, err = r.text(maxKey)
		o.status.Reason = metav1.StatusReason(reason)
	case "message":
		o.status.Message, _, err = r.text(maxMessage)
	default:
		err = r.skip()
	}
	return err
}

func (r namespaceReader) metadata(o *object, key string) (err error) {
	switch key {
	case "name":
		var whole bool
		if o.Name, whole, err = r.text(maxValue); err == nil && !whole {
			err = errNoJSON // no Namespace has such a name
		}
	case "resourceVersion":
		o.ResourceVersion, _, err = r.text(maxToken)
	case "labels":
		return r.object(func(key string) error { return r.label(o, key) })
	default:
		err = r.skip()
	}
	return err
}

func (r namespaceReader) label(o *object, key string) error {
	kept, ok := r.keys[key]
	if !ok {
		return r.skip()
	}
	value, whole, err := r.text(maxValue)
	if err != nil {
		return err
	}
	if !whole {
		return errNoJSON // no label has such a value: a guess could switch a policy off
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[kept] = value
	return nil
}

// list reads a list of Namespaces, and of its items those for which there is room.
func (r namespaceReader) list(room *room) (*metav1.PartialObjectMetadataList, error) {
	list, more := &metav1.PartialObjectMetadataList{}, false
	err := r.object(func(key string) error {
		switch key {
		case "metadata":
			return r.listMeta(&list.ListMeta)
		case "items":
			return r.array(func() error {
				if room.objects == 0 {
					more = true
					return r.skip()
				}
				room.objects--
				item, err := r.namespace()
				if err == nil {
					list.Items = append(list.Items, *item)
				}
				return err
			})
		}
		return r.skip()
	})
	if more {
		list.Continue = ""
	}
	return list, err
}

// listMeta reads the metadata of a list.
func (d *document) listMeta(into *metav1.ListMeta) error {
	return d.object(func(key string) (err error) {
		switch key {
		case "resourceVersion":
			into.ResourceVersion, _, err = d.text(maxToken)
		case "continue":
			into.Continue, _, err = d.text(maxToken)
		default:
			err = d.skip()
		}
		return err
	})
}

// next reads the next event; io.EOF: there is none.
func (r namespaceReader) next() (event, error) {
	another, err := r.another()
	if err != nil {
		return event{}, err
	}
	if !another {
		return event{}, io.EOF
	}
	return r.event()
}

// event reads an event of a watch.
func (r namespaceReader) event() (event, error) {
	var (
		e event
		o object
	)
	err := r.object(func(key string) error {
		switch key {
		case "type":
			text, _, err := r.text(maxKey)
			e.Type = watch.EventType(text)
			return err
		case "object":
			return r.object(func(key string) error { return r.member(&o, key) })
		}
		return r.skip()
	})
	if e.Type == watch.Error {
		e.Object = &o.status
	} else {
		e.Object = &o.PartialObjectMetadata
	}
	return e, err
}
