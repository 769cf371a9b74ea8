// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
)

var limitRanges = schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}

// newObjectsAPI is an API that has LimitRanges.
func newObjectsAPI(t testing.TB) *api {
	t.Helper()
	a := newAPI(t)
	a.resource, a.objects = "limitranges", map[string]string{}
	return a
}

// asked returns what is asked of an API with objects: "live" is a LIST that is no
// reflector's. name is a namespace and a slash, with the name of an object of it.
func (a *api) asked(r *http.Request) (verb, name string) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	if in, ok := strings.CutPrefix(path, "namespaces/"); ok {
		namespace, of, _ := strings.Cut(in, "/")
		path, name = of, namespace+"/"
	}
	one, ok := strings.CutPrefix(path, a.resource)
	switch {
	case !ok:
		return "unserved", ""
	case one != "":
		return "get", name + strings.TrimPrefix(one, "/")
	case r.URL.Query().Get("watch") != "":
		return "watch", ""
	case r.URL.Query().Has("resourceVersion"):
		return "list", name
	}
	return "live", name
}

func (a *api) listObjects(w http.ResponseWriter, namespace string) {
	a.mu.Lock()
	var list []string
	for name, object := range a.objects {
		if strings.HasPrefix(name, namespace) {
			list = append(list, object)
		}
	}
	version := a.version
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"kind":"LimitRangeList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, strings.Join(list, ","))
}

func (a *api) getObject(w http.ResponseWriter, name string) {
	a.mu.Lock()
	object, ok := a.objects[name]
	a.mu.Unlock()
	if !ok {
		fails(http.StatusNotFound, "NotFound")(w, nil)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, object)
}

// limits is a LimitRange with its managedFields, as an API has it in a list.
func limits(namespace, name string, version int, more string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","labels":{"tier":"gold"},`+
		`"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}],"annotations":{"a":"\u003c\"é"}}, "spec" : {"limits":[{"type":"Pod","max":{"cpu":"%d"}}]%s}}`,
		name, namespace, version, version, more)
}

// hold creates an object or changes it.
func (a *api) hold(namespace, name string) { a.holdMore(namespace, name, "") }

func (a *api) holdMore(namespace, name, more string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	event := "ADDED"
	if a.objects[namespace+"/"+name] != "" {
		event = "MODIFIED"
	}
	object := limits(namespace, name, a.version, more)
	a.objects[namespace+"/"+name] = object
	a.send(event, json.RawMessage(object))
}

// drop deletes an object.
func (a *api) drop(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	object := a.objects[namespace+"/"+name]
	delete(a.objects, namespace+"/"+name)
	a.send("DELETED", json.RawMessage(object))
}

// objects opens the source of the LimitRanges of a cluster, and waits for its list.
func (w *world) objects(cluster string, a *api) *kube.Objects {
	w.t.Helper()
	o := w.Objects(cluster, a.access(), limitRanges).(*kube.Objects)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o.Open(ctx)
	if ctx.Err() != nil {
		w.t.Fatal("never opened")
	}
	w.t.Cleanup(o.Close)
	return o
}

// cpu is what an object of limits allows; "": there is none.
func cpu(t testing.TB, o hook.Objects, namespace, name string) string {
	t.Helper()
	stored, err := o.Get(namespace, name, time.Time{})
	if err != nil {
		t.Fatalf("%s/%s: %v", namespace, name, err)
	}
	if stored == nil {
		return ""
	}
	var read struct {
		Spec struct {
			Limits []struct{ Max struct{ CPU string } }
		}
	}
	if err := json.Unmarshal(stored.JSON, &read); err != nil {
		t.Fatal(err)
	}
	return read.Spec.Limits[0].Max.CPU
}

// listed are the namespaces and names of a list.
func listed(t testing.TB, o hook.Objects, namespace string) string {
	t.Helper()
	list, err := o.List(namespace, time.Time{})
	if err != nil {
		t.Fatalf("the list of %q: %v", namespace, err)
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	return strings.Join(names, " ")
}
