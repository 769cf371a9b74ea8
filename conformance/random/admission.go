// SPDX-License-Identifier: Apache-2.0

package random

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Admission is one request, as JSON can hold it.
type Admission struct {
	Operation       admission.Operation
	Kind            schema.GroupVersionKind
	Resource        schema.GroupVersionResource
	Subresource     string
	Namespace, Name string
	Object          json.RawMessage `json:",omitempty"` // nil where there is none
	OldObject       json.RawMessage `json:",omitempty"`
	DryRun          bool
	User            user.DefaultInfo
}

func (w *writer) admission(namespaces map[string]map[string]string) Admission {
	k := pick(w.source, w.theme...)
	if w.percent(10) {
		k = pick(w.source, kinds...)
	}
	k = w.inAForm(k)
	a := Admission{
		Operation: w.operation(k),
		Resource:  k.gvr(),
		DryRun:    w.percent(15),
		User:      w.user(),
		Name:      pick(w.source, "web", "db", "shop-1"),
	}
	if !k.createOnly && len(k.subresources) > 0 && w.percent(30) {
		a.Subresource = pick(w.source, k.subresources...)
		a.Operation = admission.Update
	}
	if a.Subresource == "exec" {
		a.Operation = admission.Connect
	}
	if k.namespaced {
		a.Namespace = pick(w.source, namespaceNames...)
		if w.known {
			a.Namespace = pick(w.source, namespaceNames[:len(namespaceNames)-1]...)
		}
	}
	if k.resource == "namespaces" {
		a.Name = pick(w.source, namespaceNames...)
		if a.Operation != admission.Create { // what is not there cannot be changed
			a.Name = pick(w.source, slices.Sorted(maps.Keys(namespaces))...)
			a.Namespace = a.Name
		}
	}
	a.Kind = k.subject(a.Subresource)
	w.objects(&a, k, namespaces)
	return a
}

func (w *writer) operation(k kind) admission.Operation {
	if k.createOnly {
		return admission.Create
	}
	return pick(w.source, admission.Create, admission.Create, admission.Update, admission.Update, admission.Delete)
}

// objects fills in what the operation carries.
func (w *writer) objects(a *Admission, k kind, namespaces map[string]map[string]string) {
	switch a.Operation {
	case admission.Create:
		a.Object = w.object(a, k, nil)
	case admission.Update:
		a.OldObject = w.object(a, k, namespaces[a.Name])
		a.Object = w.object(a, k, nil)
	case admission.Delete:
		a.OldObject = w.object(a, k, namespaces[a.Name])
	case admission.Connect:
		a.Object = encode(map[string]any{"apiVersion": "v1", "kind": "PodExecOptions", "stdin": true, "command": []string{"sh"}})
	}
}

// object returns an object of kind k, or the Scale of one.
func (w *writer) object(a *Admission, k kind, stored map[string]string) json.RawMessage {
	meta := map[string]any{"name": a.Name}
	if a.Namespace != "" && k.namespaced {
		meta["namespace"] = a.Namespace
	}
	if a.Operation == admission.Create && w.percent(10) {
		delete(meta, "name")
		meta["generateName"], a.Name = "gen-", ""
	}
	labels := w.labels()
	if k.resource == "namespaces" && stored != nil {
		labels = stored
	}
	if len(labels) > 0 || w.percent(10) {
		meta["labels"] = labels
	}
	if w.percent(40) {
		meta["annotations"] = map[string]string{"example.com/a": "1", "b": "2"}
	}
	o := map[string]any{"apiVersion": a.Kind.GroupVersion().String(), "kind": a.Kind.Kind, "metadata": meta}
	if a.Subresource == "scale" {
		o["spec"] = map[string]any{"replicas": w.between(1, 4)}
	} else {
		maps.Copy(o, k.body)
		if len(k.also) > 0 {
			o[FormField] = a.Kind.GroupVersion().String()
		}
	}
	return encode(o)
}

func (w *writer) user() user.DefaultInfo {
	u := user.DefaultInfo{
		Name:   pick(w.source, "ann", "bob", "system:serviceaccount:shop:deployer", "system:node:n1", "jürgen \"x\"\n"),
		UID:    pick(w.source, "", "u-1"),
		Groups: some(w.source, 0, 3, "dev", "ops", "system:authenticated", "system:masters"),
	}
	if w.percent(30) {
		u.Extra = map[string][]string{"example.com/team": some(w.source, 0, 2, "red", "blue")}
	}
	return u
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a value of our own: %v", err))
	}
	return text
}
