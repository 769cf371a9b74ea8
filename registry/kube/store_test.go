// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

func namespaceNamed(name string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// TestStoreAgainstMap does the same to the store and to a plain map.
func TestStoreAgainstMap(t *testing.T) {
	var s store
	plain := map[string]map[string]string{}
	draw := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		name := fmt.Sprint("n", draw.IntN(20))
		labels := map[string]string{}
		for _, key := range []string{"a", "b"} {
			if n := draw.IntN(4); n > 0 {
				labels[key] = fmt.Sprint(n)
			}
		}
		switch draw.IntN(20) {
		case 0:
			var all []any
			clear(plain)
			for i := range draw.IntN(10) {
				name := fmt.Sprint("n", i)
				all = append(all, namespaceNamed(name, labels))
				plain[name] = labels
			}
			_ = s.Replace(all, "")
		case 1, 2, 3:
			_ = s.Delete(namespaceNamed(name, nil))
			delete(plain, name)
		default:
			_ = s.Add(namespaceNamed(name, labels))
			plain[name] = labels
		}
		sets := map[string]bool{}
		for i := range 20 {
			name := fmt.Sprint("n", i)
			got, ok := s.namespace(name)
			want, there := plain[name]
			if ok != there || !maps.Equal(got, want) {
				t.Fatalf("%s is %v, %t; want %v, %t", name, got, ok, want, there)
			}
			if there {
				sets[textOf(want)] = true
			}
		}
		if s.len() != len(plain) || len(s.sets) != len(sets) {
			t.Fatalf("%d namespaces, %d sets; want %d, %d", s.len(), len(s.sets), len(plain), len(sets))
		}
	}
}

// TestMemoryOfNamespaces is 200 clusters with 1,000 namespaces each: four labels, of
// which selectors name one.
func TestMemoryOfNamespaces(t *testing.T) {
	const clusters, namespaces = 200, 1000
	keys := map[string]string{"environment": "environment"}
	stores := make([]*store, clusters)
	before := inUse()
	for i := range stores {
		stores[i] = &store{}
		all := make([]any, namespaces)
		for j := range all {
			all[j] = read(t, keys, fmt.Sprintf(`{"metadata":{"name":"team-%04d-production","uid":"2f1c","annotations":{"a":"b"},"labels":{
				"kubernetes.io/metadata.name":"team-%04d-production","team":"team-%d","environment":"production-%d","pod-security.kubernetes.io/enforce":"restricted"}}}`, j, j, j, j%5))
		}
		if err := stores[i].Replace(all, ""); err != nil {
			t.Fatal(err)
		}
	}
	grown := inUse() - before
	t.Logf("%d B for a namespace, %.1f MB in all", grown/(clusters*namespaces), float64(grown)/1e6)
	if grown/(clusters*namespaces) > 200 || grown > 50e6 {
		t.Error("more than promised")
	}
	if labels, _ := stores[0].namespace("team-0007-production"); labels["environment"] != "production-2" {
		t.Errorf("labels %v", labels)
	}
	runtime.KeepAlive(stores)
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLowestVersionCounts over an hour.
func TestLowestVersionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		answers := []int{36, 37, 0, 37, 37, 37, 37, 37, 36}
		wants := []int{36, 36, 36, 36, 36, 36, 36, 37, 36}
		asked := 0
		var v version
		done := make(chan struct{})
		go func() {
			defer close(done)
			v.follow(ctx, func(context.Context) (chain.KubernetesVersion, error) {
				minor := answers[min(asked, len(answers)-1)]
				asked++
				if minor == 0 {
					return chain.KubernetesVersion{}, errors.New("refused")
				}
				return chain.KubernetesVersion{Major: 1, Minor: minor}, nil
			})
		}()
		for i, want := range wants {
			synctest.Wait()
			if got := v.lowest(); got.Minor != want {
				t.Errorf("after %d answers: %v, want 1.%d", i+1, got, want)
			}
			wait := versionInterval
			if answers[i] == 0 {
				wait = versionRetry
			}
			<-time.After(wait)
		}
		stop()
		<-done
	})
}

// TestPaceOfAWatch lets a burst through, and then so many a second.
func TestPaceOfAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		start := time.Now()
		take := func(events int) time.Duration {
			for range events {
				if err := p.take(t.Context(), eventCost); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(start).Round(time.Millisecond)
		}
		if took := take(watchBurst / eventCost); took != 0 {
			t.Errorf("the burst took %v", took)
		}
		if took := take(5_000); took != time.Second {
			t.Errorf("5,000 more took %v", took)
		}
		<-time.After(time.Hour)
		start = time.Now()
		if took := take(watchBurst/eventCost + 5_000); took != time.Second {
			t.Errorf("after an hour: %v", took)
		}
	})
}

// TestStoreIsBounded: a watch that brings namespaces without end.
func TestStoreIsBounded(t *testing.T) {
	var s store
	for i := range maxNamespaces + 10 {
		_ = s.Add(namespaceNamed(fmt.Sprint("n", i), nil))
	}
	_ = s.Update(namespaceNamed("n7", map[string]string{"a": "b"})) // what is there is kept current
	if labels, _ := s.namespace("n7"); s.len() != maxNamespaces || labels["a"] != "b" {
		t.Errorf("%d namespaces, and n7 has %v", s.len(), labels)
	}
}
