// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// itemNamed is an object as it is read.
func itemNamed(namespace, name, value string) *item {
	text := fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q},"spec":%q}`, namespace, name, value)
	o, err := (&objectReader{document: newDocument(strings.NewReader(text))}).read()
	if err != nil {
		panic(err)
	}
	return o
}

// O1 The store does what a plain map does.
func TestO1ObjectStoreAgainstMap(t *testing.T) {
	var s objectStore
	plain := map[string]string{}
	draw := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		namespace, name, value := fmt.Sprint("n", draw.IntN(3)), fmt.Sprint("o", draw.IntN(6)), fmt.Sprint(draw.IntN(3))
		o := itemNamed(namespace, name, value)
		if draw.IntN(8) == 0 {
			o.stored, o.weight = nil, tooHeavy
			value = "unkept"
		}
		switch draw.IntN(20) {
		case 0:
			_ = s.Replace([]any{o}, "")
			clear(plain)
			plain[namespace+"/"+name] = value
		case 1, 2, 3, 4, 5, 6:
			_ = s.Delete(o)
			delete(plain, namespace+"/"+name)
		default:
			_ = s.Update(o)
			plain[namespace+"/"+name] = value
		}
		compareWithMap(t, &s, plain)
	}
}

func compareWithMap(t *testing.T, s *objectStore, plain map[string]string) {
	t.Helper()
	weight := 0
	unkept := map[string]int{}
	lists := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(plain)) {
		namespace, name, _ := strings.Cut(key, "/")
		stored, ok := s.object(namespace, name)
		if ok != (plain[key] != "unkept") {
			t.Fatalf("%s is kept: %t", key, ok)
		}
		for _, list := range []string{"", namespace} {
			if !ok {
				unkept[list]++
				continue
			}
			lists[list] = append(lists[list], string(stored.JSON))
		}
		if ok {
			o := itemNamed(namespace, name, plain[key])
			weight += o.weight
			if !bytes.Equal(o.stored.JSON, stored.JSON) {
				t.Fatalf("%s is %s", key, stored.JSON)
			}
		}
	}
	for _, namespace := range []string{"", "n0", "n1", "n2"} {
		list, whole := s.list(namespace)
		if whole != (unkept[namespace] == 0) {
			t.Fatalf("the list of %q is whole: %t", namespace, whole)
		}
		var got []string
		for _, stored := range list {
			got = append(got, string(stored.JSON))
		}
		if whole && !slices.Equal(got, lists[namespace]) {
			t.Fatalf("the list of %q is %s, want %s", namespace, got, lists[namespace])
		}
	}
	var status Status
	s.into(&status)
	if want := (Status{Objects: len(plain), Unkept: unkept[""], Bytes: weight}); status != want {
		t.Fatalf("status %+v, want %+v", status, want)
	}
}

// O4 Names are bounded: beyond that nothing is taken for absent.
func TestO4ObjectStoreIsBounded(t *testing.T) {
	var s objectStore
	for i := range maxObjects + 10 {
		_ = s.Add(itemNamed("shop", fmt.Sprint("o", i), ""))
	}
	var status Status
	s.into(&status)
	if !status.Lost || status.Objects != maxObjects || status.Bytes > maxStored {
		t.Errorf("status %+v", status)
	}
	if _, whole := s.list("other"); whole || s.again() {
		t.Errorf("the list of a namespace is whole: %t; it is listed again: %t", whole, s.again())
	}
	for i := range maxObjects/2 + 1 {
		_ = s.Delete(itemNamed("shop", fmt.Sprint("o", i), ""))
	}
	if !s.again() {
		t.Error("it is not listed again although there is room")
	}
	_ = s.Replace(nil, "")
	if list, whole := s.list(""); !whole || len(list) != 0 || s.again() {
		t.Errorf("after a list of nothing: %v, %t, %t", list, whole, s.again())
	}
}

// O4 The memory that a hostile list takes while it is read, whatever it says.
func TestO4MemoryOfAList(t *testing.T) {
	for name, spec := range map[string]string{
		"large objects": `"` + strings.Repeat("x", 900<<10) + `"`,
		"many values":   `[` + strings.Repeat("[],", 10_000) + `[]]`,
		"too large":     `"` + strings.Repeat("x", 2<<20) + `"`,
		"small objects": `1`,
	} {
		t.Run(name, func(t *testing.T) {
			before := inUse()
			var s objectStore
			left := room{objects: maxObjects, weight: maxStored}
			reader := &objectReader{document: newDocument(endless(spec, 100<<20))}
			list, err := reader.list(&left)
			if err != nil {
				t.Fatal(err)
			}
			all := make([]any, len(list.Items))
			for i := range all {
				all[i] = list.Items[i]
			}
			if err := s.Replace(all, ""); err != nil {
				t.Fatal(err)
			}
			grown := inUse() - before
			t.Logf("100 MiB of %s: %d objects in %d KiB, charged %d KiB", name, s.objects, grown>>10, s.weight>>10)
			if grown > maxStored+maxObjects*300 || s.weight > maxStored {
				t.Error("more than promised")
			}
			runtime.KeepAlive(&s)
			runtime.KeepAlive(reader)
		})
	}
}

// endless is a list of objects of about so many bytes.
func endless(spec string, size int) io.Reader {
	parts := []io.Reader{strings.NewReader(`{"items":[`)}
	between := ""
	for n := 0; n < size; n += len(spec) + 60 {
		parts = append(parts, strings.NewReader(fmt.Sprintf(`%s{"metadata":{"name":"o%d"},"spec":`, between, n)), strings.NewReader(spec), strings.NewReader("}"))
		between = ","
		if len(parts) > 3*(maxObjects+100) {
			break
		}
	}
	return io.MultiReader(append(parts, strings.NewReader("]}"))...)
}

// O3 What the watch has brought does not count once it is older than a minute; what is
// asked for then is asked for by the deadline.
func TestO3StaleObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects(New(Config{}), 1, "east", manifest.KubeAccess{Server: "https://a"}, schema.GroupVersionResource{Version: "v1", Resource: "limitranges"})
		asked := 0
		hanging := false
		o.live.get = func(ctx context.Context, q wanted) (answer, error) {
			asked++
			if hanging {
				<-ctx.Done()
				return answer{}, ctx.Err()
			}
			return answer{stored: itemNamed(q.namespace, q.name, "live").stored}, nil
		}
		_ = o.store.Replace([]any{itemNamed("shop", "a", "watched")}, "")
		expect := func(when, value string, times int) {
			t.Helper()
			stored, err := o.Get("shop", "a", time.Time{})
			if err != nil || !strings.Contains(string(stored.JSON), value) || asked != times {
				t.Errorf("%s: %v, %v, asked %d times", when, stored, err, asked)
			}
		}
		expect("before it was listed", "live", 1)
		<-time.After(foundFor + 1)
		o.health.connected()
		<-time.After(time.Hour)
		expect("while it is watched", "watched", 1)
		o.health.disconnected(time.Now())
		<-time.After(staleAfter)
		expect("a minute after the watch broke", "watched", 1)
		<-time.After(1)
		expect("after more than a minute", "live", 2)
		<-time.After(foundFor + 1)
		hanging = true
		start := time.Now()
		if _, err := o.Get("shop", "a", start.Add(400*time.Millisecond)); !errors.Is(err, errNoAnswer) || time.Since(start) != 200*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := o.List("shop", start.Add(time.Minute)); !errors.Is(err, errNoAnswer) || time.Since(start) != 700*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		o.health.connected()
		expect("watched again", "watched", 4)
	})
}

// O2 Live answers of one resource are bounded, in number, in bytes and in time.
func TestO2LiveAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects(New(Config{}), 1, "east", manifest.KubeAccess{Server: "https://a"}, schema.GroupVersionResource{Version: "v1", Resource: "limitranges"})
		var mu sync.Mutex
		now, most := 0, 0
		o.live.get = func(_ context.Context, q wanted) (answer, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			if q.namespace == "none" {
				return answer{}, nil
			}
			return answer{list: []*hook.Stored{}, weight: maxListed / 2}, nil
		}
		done := make(chan struct{})
		for i := range 40 {
			go func() {
				_, _ = o.List(fmt.Sprint("n", i), time.Time{})
				done <- struct{}{}
			}()
		}
		for range 40 {
			<-done
		}
		if most != maxObjectGets {
			t.Errorf("%d at a time", most)
		}
		if len(o.live.found) > 2 || o.live.weight > maxFound {
			t.Errorf("%d answers are kept, weight %d", len(o.live.found), o.live.weight)
		}
		<-time.After(foundFor + 1)
		_, _ = o.Get("none", "a", time.Time{})
		before := o.live.gets.Load()
		<-time.After(absentFor)
		_, _ = o.Get("none", "a", time.Time{})
		if o.live.gets.Load() != before {
			t.Error("that there is none is asked for again at once")
		}
		<-time.After(1)
		_, _ = o.Get("none", "a", time.Time{})
		if o.live.gets.Load() != before+1 {
			t.Error("that there is none counts for longer than a second")
		}
	})
}

// O1 What an object says is kept, whatever its members are, in a list and in an event.
func TestO1WhatIsRead(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"members in any order", `{"spec":{"a":[1,2.5e3,-0,true,null,"\u00e9\\\"",{}]},"metadata":{"labels":{"a":"b","c":""},"uid":"u","name":"n"},"kind":"K","apiVersion":"v1"}`, ""},
		{"white space", " {\n \"metadata\" : { \"name\" : \"n\" } , \"spec\" : [ 1 , { \"a b\" : \" c \" } ] }", ""},
		{"managedFields", `{"metadata":{"managedFields":[{"a":{"name":"x"}}],"name":"n"}}`, `{"metadata":{"name":"n"}}`},
		{"managedFields elsewhere", `{"metadata":{"name":"n"},"spec":{"managedFields":1,"metadata":{"managedFields":2}}}`, ""},
		{"labels that are null", `{"metadata":{"name":"n","labels":null},"data":null}`, `{"metadata":{"name":"n","labels":{}},"data":null}`},
		{"a long name", `{"metadata":{"name":"` + strings.Repeat("n", 254) + `"}}`, "error"},
		{"a long label", `{"metadata":{"name":"n","labels":{"a":"` + strings.Repeat("n", 64) + `"}}}`, "error"},
		{"a member that is no JSON", `{"metadata":{"name":"n"},"spec":[1 2]}`, "error"},
		{"a number that is none", `{"metadata":{"name":"n"},"spec":01}`, "error"},
		{"brackets that do not fit", `{"metadata":{"name":"n"},"spec":[}}`, "error"},
		{"cut", `{"metadata":{"name":"n"},"spec":"`, "error"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o, err := (&objectReader{document: newDocument(strings.NewReader(row.in))}).read()
			if row.want == "error" {
				if err == nil {
					t.Fatalf("it is read as %s", o.stored.JSON)
				}
				return
			}
			if err != nil || o.Name != "n" {
				t.Fatal(o, err)
			}
			if row.want == "" {
				row.want = row.in
			}
			if diff := cmp.Diff(decoded(t, row.want), decoded(t, string(o.stored.JSON))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
