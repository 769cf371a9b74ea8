// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
)

// O1 What is stored is as the watch has brought it, whole but for managedFields, and
// nobody asks the cluster for it.
func TestO1ObjectsFollowTheCluster(t *testing.T) {
	a := newObjectsAPI(t)
	a.hold("shop", "b")
	a.hold("shop", "a")
	a.hold("bank", "z")
	w := newWorld(t)
	o := w.objects("east", a)
	if got := listed(t, o, "shop"); got != "shop/a shop/b" {
		t.Errorf("shop has %s", got)
	}
	if got := listed(t, o, ""); got != "bank/z shop/a shop/b" {
		t.Errorf("all are %s", got)
	}
	if got := listed(t, o, "other"); got != "" {
		t.Errorf("other has %s", got)
	}
	stored, err := o.Get("shop", "a", time.Time{})
	if err != nil || stored == nil {
		t.Fatal(stored, err)
	}
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(stored.JSON, &got), json.Unmarshal([]byte(limits("shop", "a", 2, "")), &want)); err != nil {
		t.Fatal(err)
	}
	want["kind"], want["apiVersion"] = "LimitRange", "v1" // which the items of a list do not say
	delete(want["metadata"].(map[string]any), "managedFields")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"tier": "gold"}, stored.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	a.hold("shop", "a")
	a.drop("bank", "z")
	a.hold("shop", "c")
	eventually(t, "the changes", func() bool { return listed(t, o, "") == "shop/a shop/b shop/c" && cpu(t, o, "shop", "a") == "4" })
	if n := a.times("get") + a.times("live"); n != 0 {
		t.Errorf("%d live requests", n)
	}
	if s := w.ObjectsStatus(); len(s) != 1 || s[0].Resource != "limitranges.v1" || s[0].Objects != 3 || s[0].Unkept != 0 || s[0].Stale || s[0].Bytes < 3*500 {
		t.Errorf("status %+v", s)
	}
	if len(w.Status()) != 0 {
		t.Errorf("status of namespaces %+v", w.Status())
	}
}

// O1 A bookmark says nothing but how far the watch is; what begins at a version that the
// API has forgotten is listed again.
func TestO1BookmarksAndExpiry(t *testing.T) {
	a := newObjectsAPI(t)
	a.hold("shop", "a")
	o := newWorld(t).objects("east", a)
	a.mu.Lock()
	a.send("BOOKMARK", json.RawMessage(`{"kind":"LimitRange","apiVersion":"v1","metadata":{"resourceVersion":"77","creationTimestamp":null},"spec":{"limits":null}}`))
	a.mu.Unlock()
	a.hold("shop", "b")
	eventually(t, "what follows the bookmark", func() bool { return listed(t, o, "") == "shop/a shop/b" })
	a.mu.Lock()
	delete(a.objects, "shop/a") // missed
	a.mu.Unlock()
	before, err := o.Get("shop", "b", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	a.expire()
	eventually(t, "another list", func() bool { return a.times("list") == 2 && listed(t, o, "") == "shop/b" })
	if after, err := o.Get("shop", "b", time.Time{}); err != nil || after != before {
		t.Errorf("what was made of an object is lost with a list in which it has not changed: %v", err)
	}
}

// O2 What the watch has not brought is one live GET for all who wait; that there is none
// counts for a moment.
func TestO2ObjectThatWasNotBrought(t *testing.T) {
	a := newObjectsAPI(t)
	o := newWorld(t).objects("east", a)
	a.mu.Lock()
	a.watches = map[chan metav1.WatchEvent]bool{} // the event is on its way for ever
	a.mu.Unlock()
	a.hold("shop", "new")
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if got := cpu(t, o, "shop", "new"); got != "1" {
				t.Errorf("cpu %q", got)
			}
		})
	}
	asking.Wait()
	if n := a.times("get"); n != 1 {
		t.Errorf("%d live GETs", n)
	}
	for range 20 {
		if got := cpu(t, o, "shop", "none"); got != "" {
			t.Errorf("cpu %q of one that does not exist", got)
		}
	}
	if n := a.times("get"); n != 2 {
		t.Errorf("%d live GETs for another that does not exist", n-1)
	}
	for _, name := range [][2]string{{"shop", ""}, {"shop", ".."}, {"shop", "a/b"}, {"shop", "a%2fb"}, {"a/b", "a"}, {"..", "a"}, {"shop", strings.Repeat("a", 254)}} {
		if got := cpu(t, o, name[0], name[1]); got != "" || a.times("get") != 2 {
			t.Errorf("%q: %q, %d live GETs", name, got, a.times("get"))
		}
	}
}

// O2 Before it is open, and after it was closed, the cluster is asked.
func TestO2AskedWhileClosed(t *testing.T) {
	a := newObjectsAPI(t)
	a.hold("shop", "b")
	a.hold("shop", "a")
	a.hold("bank", "z")
	o := newWorld(t).Objects("east", a.access(), limitRanges)
	if got := cpu(t, o, "shop", "b"); got != "1" {
		t.Errorf("cpu %q", got)
	}
	for range 5 {
		if got := listed(t, o, "shop"); got != "shop/a shop/b" {
			t.Errorf("shop has %s", got)
		}
	}
	if got := listed(t, o, ""); got != "bank/z shop/a shop/b" {
		t.Errorf("all are %s", got)
	}
	if a.times("get") != 1 || a.times("live") != 2 || a.times("list") != 0 {
		t.Errorf("%d GETs, %d LISTs, %d lists of a watch", a.times("get"), a.times("live"), a.times("list"))
	}
}

// O8 What is known is so without a request: what the watch has brought, what was asked for a
// moment ago, and what none can have. Else nobody is asked, and nothing is said of it.
func TestO8KnownWithoutARequest(t *testing.T) {
	a := newObjectsAPI(t)
	a.hold("shop", "a")
	for name, o := range map[string]chain.ObjectSource{"closed": newWorld(t).Objects("east", a.access(), limitRanges), "open": newWorld(t).objects("east", a)} {
		before := a.times("get") + a.times("live")
		k := o.(hook.KnownObjects)
		knows := func(what, object, list string, want bool) {
			stored, err := k.Known("shop", object)
			_, errList := k.KnownList(list)
			if (err == nil && errList == nil) != want || !want && !(errors.Is(err, hook.ErrNotLookedUp) && errors.Is(errList, hook.ErrNotLookedUp)) || stored != nil && stored.Name != "a" {
				t.Errorf("%s, %s: %v, %v, %v", name, what, stored, err, errList)
			}
		}
		knows("no name", "..", "a/b", true)
		knows("at first", "a", "shop", name == "open")
		if after := a.times("get") + a.times("live"); after != before {
			t.Errorf("%s: %d requests", name, after-before)
		}
		_, _ = o.Get("shop", "a", time.Time{})
		_, _ = o.List("shop", time.Time{})
		knows("then", "a", "shop", true)
	}
}

// O3 What is not known is an error that says so, never "there is none"; then it recovers.
func TestO3ObjectsAreNotSynced(t *testing.T) {
	for _, tt := range []struct {
		name string
		does http.HandlerFunc
		want string
	}{
		{"401", fails(401, metav1.StatusReasonUnauthorized), "the cluster's API does not let the dispatcher read limitranges"},
		{"403", fails(403, metav1.StatusReasonForbidden), "the cluster's API does not let the dispatcher read limitranges"},
		{"500", fails(500, metav1.StatusReasonInternalError), "could not be asked"},
		{"404", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "the cluster's API does not serve them"},
		{"nonsense", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "nonsense") }, "could not be asked"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"a"},"spec":tru}],"metadata":{"name":"a","namespace":"shop"},"spec":tru}`)
		}, "could not be asked"},
		{"another object", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items":[`+limits("bank", "b", 1, "")+`],`+limits("bank", "a", 1, "")[1:])
		}, "could not be asked"},
		{"hangs", hangs, "did not answer in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newObjectsAPI(t)
			a.hold("shop", "a")
			for _, verb := range []string{"watch", "get", "live"} {
				a.now(verb, tt.does)
			}
			a.now("list", fails(500, metav1.StatusReasonInternalError))
			w := newWorld(t)
			o := w.objects("east", a)
			want := "limitranges are not synced: "
			if _, err := o.Get("shop", "a", time.Time{}); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Get: %v", err)
			}
			if _, err := o.List("shop", time.Time{}); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("List: %v", err)
			}
			if s := w.ObjectsStatus(); len(s) != 1 || !s[0].Stale || s[0].Synced || s[0].LastError == "" || s[0].LiveGets == 0 {
				t.Errorf("status %+v", s)
			}
			eventually(t, "a log line", func() bool { return w.logged("objects of a cluster are stale") && w.logged("resource=limitranges.v1") })
			for _, verb := range []string{"list", "watch", "get", "live"} {
				a.now(verb, nil)
			}
			eventually(t, "recovery", func() bool { return w.logged("objects of a cluster are watched again") })
			if got := listed(t, o, "shop"); got != "shop/a" {
				t.Errorf("shop has %s", got)
			}
		})
	}
}

// O3 While the watch is broken for a moment what it has brought counts.
func TestO3WatchBreaks(t *testing.T) {
	a := newObjectsAPI(t)
	a.hold("shop", "a")
	w := newWorld(t)
	o := w.objects("east", a)
	for _, verb := range []string{"list", "watch", "get", "live"} {
		a.now(verb, fails(503, metav1.StatusReasonServiceUnavailable))
	}
	a.breakWatches()
	eventually(t, "a watch that fails", func() bool { return w.ObjectsStatus()[0].LastError != "" })
	if got := cpu(t, o, "shop", "a"); got != "1" {
		t.Errorf("cpu %q", got)
	}
	if got := listed(t, o, "shop"); got != "shop/a" || w.ObjectsStatus()[0].Stale {
		t.Errorf("shop has %s, status %+v", got, w.ObjectsStatus())
	}
}

// O4 An object that is larger than what is kept: it is known that it is there, and all
// others are listed and found as ever.
func TestO4LargeObject(t *testing.T) {
	a := newObjectsAPI(t)
	large := `,"padding":"` + strings.Repeat("x", 1<<20) + `"`
	a.holdMore("shop", "large", large)
	a.hold("bank", "small")
	w := newWorld(t)
	o := w.objects("east", a)
	check := func() {
		t.Helper()
		if got := listed(t, o, "bank"); got != "bank/small" {
			t.Errorf("bank has %s", got)
		}
		if _, err := o.List("shop", time.Time{}); err == nil || !strings.Contains(err.Error(), "limitranges are not synced: there are more than are read") {
			t.Errorf("the list with the large one: %v", err)
		}
		if _, err := o.List("", time.Time{}); err == nil {
			t.Error("a list of all without the large one")
		}
		if _, err := o.Get("shop", "large", time.Time{}); err == nil || !strings.Contains(err.Error(), "it is larger than what is read") {
			t.Errorf("the large one: %v", err)
		}
	}
	check()
	a.holdMore("shop", "large", large)
	a.hold("bank", "later")
	eventually(t, "the changes", func() bool { return cpu(t, o, "bank", "later") == "4" })
	a.drop("bank", "later")
	eventually(t, "another", func() bool { return listed(t, o, "bank") == "bank/small" })
	check()
	if s := w.ObjectsStatus()[0]; s.Objects != 2 || s.Unkept != 1 || s.Bytes > 1<<16 {
		t.Errorf("status %+v", s)
	}
	a.hold("shop", "large")
	eventually(t, "it is not large any more", func() bool { list, err := o.List("shop", time.Time{}); return err == nil && len(list) == 1 })
	if n := a.times("list"); n != 1 {
		t.Errorf("%d lists", n)
	}
}

// O4 A cluster that stores more than is kept takes no more memory; single objects are
// asked for, lists are an error, and once there is room all is listed again.
func TestO4MoreThanIsKept(t *testing.T) {
	a := newObjectsAPI(t)
	padding := `,"padding":[` + strings.Repeat("{},", 1550) + `{}]` // which weighs 100 KiB
	const many = 200
	for i := range many {
		a.holdMore("n"+string(rune('a'+i%20)), "o"+string(rune('a'+i/20)), padding)
	}
	w := newWorld(t)
	o := w.objects("east", a)
	if s := w.ObjectsStatus()[0]; s.Objects != many || s.Unkept < many/8 || s.Bytes > 16<<20 {
		t.Errorf("status %+v", s)
	}
	found := 0
	for i := range many {
		stored, err := o.Get("n"+string(rune('a'+i%20)), "o"+string(rune('a'+i/20)), time.Time{})
		if err == nil && stored != nil {
			found++
		}
	}
	if found != many {
		t.Errorf("%d objects are found", found)
	}
	eventually(t, "all of them are too many", func() bool {
		_, err := o.List("", time.Time{})
		if err == nil {
			t.Fatal("there are all")
		}
		return strings.Contains(err.Error(), "there are more than are read")
	})
	eventually(t, "a namespace by a live LIST", func() bool {
		list, err := o.List("nt", time.Time{})
		return err == nil && len(list) == many/20
	})
	for i := range many - 5 {
		a.drop("n"+string(rune('a'+i%20)), "o"+string(rune('a'+i/20)))
	}
	eventually(t, "all that are left are kept", func() bool { s := w.ObjectsStatus()[0]; return s.Objects == 5 && s.Unkept == 0 && !s.Lost })
	if got := listed(t, o, ""); len(strings.Fields(got)) != 5 {
		t.Errorf("all of them: %s", got)
	}
}

// O4 What takes few bytes and decodes to many counts as what it decodes to.
func TestO4ManyValues(t *testing.T) {
	a := newObjectsAPI(t)
	a.holdMore("shop", "bomb", `,"x":[`+strings.Repeat("{},", 300_000)+`{}]`)
	w := newWorld(t)
	w.objects("east", a)
	if s := w.ObjectsStatus()[0]; s.Unkept != 1 || s.Bytes != 0 {
		t.Errorf("status %+v", s)
	}
}

// O4 A list and an event that are larger than what is read are given up.
func TestO4HugeAnswers(t *testing.T) {
	a := newObjectsAPI(t)
	a.hold("shop", "a")
	a.now("watch", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"spec":"`)
		padding := bytes.Repeat([]byte("x"), 1<<20)
		for range 64 {
			if _, err := w.Write(padding); err != nil {
				return
			}
		}
		<-r.Context().Done()
	})
	w := newWorld(t)
	grown := heap(func() {
		w.objects("east", a)
		eventually(t, "the watch is given up", func() bool { return w.ObjectsStatus()[0].Cause == kube.CauseTooLarge })
	})
	if grown > 32<<20 {
		t.Errorf("%d MiB of heap", grown>>20)
	}
	b := newObjectsAPI(t)
	b.now("live", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"metadata":{"a":"`)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 17<<20))
	})
	if _, err := newWorld(t).Objects("west", b.access(), limitRanges).List("shop", time.Time{}); err == nil {
		t.Error("a list without an end")
	}
}

// O5 Who has the same access to a cluster shares its connection, and lists one after the
// other: one whose API hangs holds one of the places for lists.
func TestO5OneListOfACluster(t *testing.T) {
	a, w := newObjectsAPI(t), newWorld(t)
	var now, most atomic.Int64
	answered := make(chan struct{})
	a.now("list", func(out http.ResponseWriter, _ *http.Request) {
		for n := now.Add(1); most.Load() < n; {
			most.Store(n)
		}
		<-answered
		now.Add(-1)
		a.listObjects(out, "")
	})
	a.now("unserved", nil)
	var open []*kube.Objects
	var opening sync.WaitGroup
	for _, resource := range []string{"limitranges", "limitrangesx", "limitrangesy"} {
		o := w.Objects("east", a.access(), schema.GroupVersionResource{Version: "v1", Resource: resource}).(*kube.Objects)
		open = append(open, o)
		opening.Go(func() { o.Open(t.Context()) })
	}
	t.Cleanup(func() {
		for _, o := range open {
			o.Close()
		}
	})
	eventually(t, "a list", func() bool { return now.Load() == 1 })
	other := newObjectsAPI(t)
	other.hold("shop", "a")
	if got := listed(t, w.objects("west", other), "shop"); got != "shop/a" {
		t.Errorf("another cluster has %s meanwhile", got)
	}
	close(answered)
	opening.Wait()
	if most.Load() != 1 {
		t.Errorf("%d lists at a time", most.Load())
	}
}

// O5 The same resource by the same access is one source, as long as it is open.
func TestO5ObjectsAreShared(t *testing.T) {
	a := newObjectsAPI(t)
	w := newWorld(t)
	o := w.objects("east", a)
	if w.Objects("east", a.access(), limitRanges) != o {
		t.Error("the same resource is another source")
	}
	elsewhere := a.access()
	elsewhere.Server += "/"
	for name, other := range map[string]any{
		"another cluster":  w.Objects("west", a.access(), limitRanges),
		"another access":   w.Objects("east", elsewhere, limitRanges),
		"another version":  w.Objects("east", a.access(), schema.GroupVersionResource{Version: "v2", Resource: "limitranges"}),
		"another resource": w.Objects("east", a.access(), schema.GroupVersionResource{Version: "v1", Resource: "pods"}),
	} {
		if other == o {
			t.Errorf("%s is the same source", name)
		}
	}
	if o.Busy() || o.Ready(nil) != nil || o.Identity() == w.Objects("west", a.access(), limitRanges).Identity() || o.String() != "limitranges.v1 of cluster east" {
		t.Errorf("%s: %s", o.Identity(), o)
	}
}
