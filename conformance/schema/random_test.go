// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
)

// source makes random definitions, and objects of them.
type source struct{ *rand.Rand }

func (g *source) some(percent int) bool { return g.IntN(100) < percent }

// definition is a structural schema.
func (g *source) definition() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{"spec": g.object(4), "status": g.schema(2)}}
}

type object = map[string]any

// schema is a schema of any form, at most so deep.
func (g *source) schema(depth int) object {
	s := g.form(depth)
	if g.some(10) {
		s["nullable"] = true
	}
	return s
}

func (g *source) form(depth int) object {
	if depth == 0 {
		return g.scalar()
	}
	switch g.IntN(9) {
	case 0, 1:
		return g.object(depth)
	case 2:
		return g.mapOf(object{"type": "object", "additionalProperties": g.schema(depth - 1)})
	case 3:
		return object{"type": "array", "items": g.schema(depth - 1), "x-kubernetes-list-type": "atomic"}
	case 4:
		return object{"type": "array", "items": object{"type": "string"}, "x-kubernetes-list-type": "set"}
	case 5:
		return g.keyed(depth)
	case 6:
		return g.open()
	case 7:
		return object{"type": "array", "items": g.schema(depth - 1)}
	}
	return g.scalar()
}

func (g *source) object(depth int) object {
	properties := object{}
	for i := range 1 + g.IntN(4) {
		properties[fmt.Sprintf("f%d", i)] = g.schema(depth - 1)
	}
	return g.mapOf(object{"type": "object", "properties": properties})
}

func (g *source) mapOf(s object) object {
	if g.some(20) {
		s["x-kubernetes-map-type"] = []string{"atomic", "granular"}[g.IntN(2)]
	}
	if _, is := s["properties"]; is && g.some(15) {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	return s
}

// keyed is a list of objects with keys, one of which may have a default.
func (g *source) keyed(depth int) object {
	properties := object{"name": object{"type": "string"}, "port": object{"type": "integer"}, "value": g.schema(depth - 1)}
	keys := []any{"name"}
	if g.some(50) {
		keys = append(keys, "port")
		if g.some(70) {
			properties["port"] = object{"type": "integer", "default": 80}
		}
	}
	return object{
		"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
		"items": object{"type": "object", "required": []any{"name"}, "properties": properties},
	}
}

// open is what is of more than one form.
func (g *source) open() object {
	switch g.IntN(4) {
	case 0:
		return object{"x-kubernetes-preserve-unknown-fields": true}
	case 1:
		return object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	case 2:
		return object{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
	}
	return object{"type": "object", "x-kubernetes-embedded-resource": true, "properties": object{"spec": g.scalar()}}
}

func (g *source) scalar() object {
	return []object{
		{"type": "string"}, {"type": "string", "format": "date-time"}, {"type": "string", "format": "byte"}, {"type": "string", "enum": []any{"a", "b"}},
		{"type": "integer", "format": "int32"}, {"type": "number"}, {"type": "boolean"}, {"x-kubernetes-int-or-string": true},
		{"x-kubernetes-int-or-string": true, "anyOf": []any{object{"type": "integer"}, object{"type": "string"}}},
	}[g.IntN(9)]
}

// pair is an object and a configuration of it, of which at most one is wrong, at one place.
func (g *source) pair(definition object) (live, said object, wrong string) {
	o := &objects{source: g}
	live = o.root(definition)
	if g.some(30) {
		o.wrong = []string{"type", "unknown", "keys", "twice"}[g.IntN(4)]
	}
	said = o.root(definition)
	return live, said, o.did
}

// objects makes objects. wrong is done once, where there is a place for it, and did is set.
type objects struct {
	*source
	wrong, did string
}

func (o *objects) root(definition object) object {
	made := o.fields(definition["properties"].(object))
	made["apiVersion"], made["kind"] = "example.com/v1", "Widget"
	made["metadata"] = o.metadata()
	return made
}

func (o *objects) metadata() object {
	m := object{"name": "a"}
	if o.some(40) {
		m["labels"] = object{"a": "b", fmt.Sprint("c", o.IntN(2)): "d"}
	}
	if o.some(40) {
		m["finalizers"] = []any{fmt.Sprint("example.com/", o.IntN(3))}
	}
	return m
}

// now reports whether this is where something is wrong.
func (o *objects) now(wrong string) bool {
	if o.wrong != wrong || !o.some(30) {
		return false
	}
	o.wrong, o.did = "", wrong
	return true
}

func (o *objects) fields(of object) object {
	made := object{}
	for i := range 5 {
		for _, name := range []string{fmt.Sprint("f", i), []string{"spec", "status", "name", "port", "value"}[i]} {
			if s, ok := of[name].(object); ok && o.some(60) {
				made[name] = o.value(s)
			}
		}
	}
	if o.now("unknown") {
		made["unknown"] = []any{int64(1), object{"a": "b"}, "c"}[o.IntN(3)]
	}
	return made
}

func (o *objects) value(s object) any {
	if o.now("type") {
		return []any{"text", int64(7), true, []any{"a"}, object{"a": int64(1)}, nil}[o.IntN(6)]
	}
	if s["nullable"] == true && o.some(10) {
		return nil
	}
	switch s["type"] {
	case "object":
		return o.object(s)
	case "array":
		return o.list(s)
	case "string":
		return fmt.Sprint("s", o.IntN(3))
	case "integer":
		return int64(o.IntN(3))
	case "number":
		return []any{int64(1), 0.5}[o.IntN(2)]
	case "boolean":
		return o.some(50)
	}
	if s["x-kubernetes-int-or-string"] == true {
		return []any{int64(80), "80%"}[o.IntN(2)]
	}
	return o.anything()
}

func (o *objects) anything() any {
	return []any{"a", int64(1), []any{"a", int64(2)}, object{"a": object{"b": []any{object{"c": "d"}}}, "e": "f"}}[o.IntN(4)]
}

func (o *objects) object(s object) any {
	made := object{}
	if properties, ok := s["properties"].(object); ok {
		made = o.fields(properties)
	}
	if of, ok := s["additionalProperties"].(object); ok {
		for i := range o.IntN(3) {
			made[fmt.Sprint("k", i+o.IntN(2))] = o.value(of)
		}
	}
	if s["x-kubernetes-embedded-resource"] == true {
		made["apiVersion"], made["kind"], made["metadata"] = "v1", "Pod", o.metadata()
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true && o.some(60) {
		made["any"] = o.anything()
	}
	return made
}

func (o *objects) list(s object) any {
	items := s["items"].(object)
	var made []any
	for i := range o.IntN(4) {
		switch s["x-kubernetes-list-type"] {
		case "set":
			made = append(made, fmt.Sprint("s", i+o.IntN(2)*10))
		case "map":
			made = append(made, o.element(items, i))
		default:
			made = append(made, o.value(items))
		}
	}
	if len(made) > 0 && o.now("twice") {
		made = append(made, made[0])
	}
	if made == nil {
		return []any{}
	}
	return made
}

// element is one of a list with keys.
func (o *objects) element(items object, i int) any {
	made := o.fields(items["properties"].(object))
	made["name"] = fmt.Sprint("n", i+o.IntN(2)*10)
	if o.now("keys") {
		delete(made, "name")
		delete(made, "port")
	}
	return made
}
