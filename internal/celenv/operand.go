// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"strings"
	"unsafe"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// An operand is a variable, or a field of one, that predicates can read. What it
// cannot be sure of it leaves to CEL: a value that is unknown.
type operand interface{ read(v *Variables) value }

// A collection is an operand that has elements: a map with keys, or a list of strings,
// each of which is its own key.
type collection interface {
	operand
	// find returns the element; absent if there is none in a collection that is there.
	find(v *Variables, key string) value
	count(v *Variables) value
	// cost is what CEL charges for looking whether a key is in it.
	cost(v *Variables) uint64
}

// element is an operand of a map.
type element struct {
	of  collection
	key string
}

func (e element) read(v *Variables) value { return e.of.find(v, e.key) }

// operandAt returns the operand at a path such as object, metadata, name; nil if
// predicates do not know it.
func operandAt(path []string) operand {
	if n := len(path) - 1; n > 0 {
		if of, ok := operandAt(path[:n]).(collection); ok {
			return element{of, path[n]}
		}
	}
	switch root := path[0]; root {
	case "request":
		return requestFields[strings.Join(path[1:], ".")] // typed: no key has a dot in it
	case "object", "oldObject":
		return objectVariable(root == "oldObject").fieldAt(path[1:])
	case clusterVariable:
		return clusterFields[strings.Join(path[1:], ".")]
	}
	return nil
}

// function is an operand that is read by itself.
type function func(*Variables) value

func (f function) read(v *Variables) value { return f(v) }

// The fields of request are what requestOf makes them.
var requestFields = map[string]operand{
	"kind.group":               required(func(r *codec.Review) []byte { return r.Kind.Group }),
	"kind.version":             required(func(r *codec.Review) []byte { return r.Kind.Version }),
	"kind.kind":                required(func(r *codec.Review) []byte { return r.Kind.Kind }),
	"resource.group":           required(func(r *codec.Review) []byte { return r.RequestResource.Group }),
	"resource.version":         required(func(r *codec.Review) []byte { return r.RequestResource.Version }),
	"resource.resource":        required(func(r *codec.Review) []byte { return r.RequestResource.Resource }),
	"subResource":              optional(func(r *codec.Review) []byte { return r.RequestSubResource }),
	"requestKind.group":        required(func(r *codec.Review) []byte { return r.RequestKind.Group }),
	"requestKind.version":      required(func(r *codec.Review) []byte { return r.RequestKind.Version }),
	"requestKind.kind":         required(func(r *codec.Review) []byte { return r.RequestKind.Kind }),
	"requestResource.group":    required(func(r *codec.Review) []byte { return r.RequestResource.Group }),
	"requestResource.version":  required(func(r *codec.Review) []byte { return r.RequestResource.Version }),
	"requestResource.resource": required(func(r *codec.Review) []byte { return r.RequestResource.Resource }),
	"requestSubResource":       optional(func(r *codec.Review) []byte { return r.RequestSubResource }),
	"name":                     optional(func(r *codec.Review) []byte { return r.Name }),
	"namespace":                optional(func(r *codec.Review) []byte { return r.Namespace }),
	"operation":                function(func(v *Variables) value { return textOf(v.Review.Operation.String()) }),
	"userInfo.username":        optional(func(r *codec.Review) []byte { return r.User.Username }),
	"userInfo.uid":             optional(func(r *codec.Review) []byte { return r.User.UID }),
	"userInfo.groups":          groups{},
	"dryRun":                   function(func(v *Variables) value { return boolOf(v.Review.DryRun) }),
}

var clusterFields = map[string]operand{
	"name":   function(func(v *Variables) value { return textOf(v.ClusterName) }),
	"labels": clusterLabels{},
}

// required is a field that is there even if it is empty.
func required(field func(*codec.Review) []byte) operand {
	return function(func(v *Variables) value { return textOf(borrowed(field(v.Review))) })
}

// optional is a field that is absent if it is empty.
func optional(field func(*codec.Review) []byte) operand {
	return function(func(v *Variables) value {
		if text := field(v.Review); len(text) > 0 {
			return textOf(borrowed(text))
		}
		return value{kind: absent}
	})
}

// borrowed is b as a string, for as long as the Variables are.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// groups are the groups of the user.
type groups struct{}

func (groups) read(v *Variables) value {
	if len(v.Review.User.Groups) == 0 {
		return value{kind: absent}
	}
	return value{kind: container}
}

func (groups) find(v *Variables, key string) value {
	list := v.Review.User.Groups
	for _, group := range list {
		if string(group) == key {
			return textOf(key)
		}
	}
	if len(list) == 0 {
		return value{}
	}
	return value{kind: absent}
}

func (groups) count(v *Variables) value {
	if n := len(v.Review.User.Groups); n > 0 {
		return numberOf(n)
	}
	return value{}
}

func (groups) cost(v *Variables) uint64 { return uint64(len(v.Review.User.Groups)) }

// clusterLabels are the labels of the cluster.
type clusterLabels struct{}

func (clusterLabels) read(*Variables) value { return value{kind: container} }

func (clusterLabels) find(v *Variables, key string) value {
	if label, ok := v.ClusterLabels[key]; ok {
		return textOf(label)
	}
	return value{kind: absent}
}

func (clusterLabels) count(v *Variables) value { return numberOf(len(v.ClusterLabels)) }
func (clusterLabels) cost(*Variables) uint64   { return 1 }
