// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
)

// heap returns the most that was in use while f ran, in bytes, above what was in
// use before.
func heap(f func()) int64 {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	most := make(chan uint64)
	go func() {
		var highest uint64
		for {
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapAlloc)
			select {
			case <-done:
				most <- highest
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	return int64(<-most) - int64(before.HeapAlloc)
}

// fat answers a list of namespaces with annotations of 1 MiB each.
func fat(namespaces int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[`)
		padding := bytes.Repeat([]byte("x"), 1<<20)
		for i := range namespaces {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = fmt.Fprintf(w, `{"metadata":{"name":"shop-%d","annotations":{"a":"%s"},"labels":{"tier":"gold"}}}`, i, padding)
		}
		_, _ = io.WriteString(w, `]}`)
	}
}

// TestFatNamespaces lists what is nearly all annotations: it is read and takes no
// memory.
func TestFatNamespaces(t *testing.T) {
	a := newAPI(t)
	a.now("list", fat(64))
	var s *kube.Source
	grown := heap(func() { s = newWorld(t).prepare("east", a.access()) })
	t.Logf("64 MiB of namespaces: %d KiB of heap", grown>>10)
	if grown > 32<<20 {
		t.Errorf("%d MiB of heap", grown>>20)
	}
	a.now("get", hangs)
	expectTier(t, s, "shop-63", "gold")
}

// TestHugeList is 600 MiB: it is given up, and what is asked for is asked for.
func TestHugeList(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	a.now("list", fat(600))
	w := newWorld(t)
	var s *kube.Source
	grown := heap(func() { s = w.prepare("east", a.access()) })
	t.Logf("600 MiB of namespaces: %d KiB of heap", grown>>10)
	if grown > 32<<20 {
		t.Errorf("%d MiB of heap", grown>>20)
	}
	if cause := w.Status()[0].Cause; cause != kube.CauseTooLarge && cause != kube.CauseTimeout {
		t.Errorf("status %+v", w.Status()[0])
	}
	expectTier(t, s, "shop", "gold")
}

// TestManyNamespaces keeps a part of them, and asks for the others.
func TestManyNamespaces(t *testing.T) {
	const many = 50_100
	a := newAPI(t)
	for i := range many {
		a.put(fmt.Sprint("shop-", i), gold())
	}
	w := newWorld(t)
	s := w.prepare("east", a.access())
	if n := w.Status()[0].Namespaces; n != 50_000 {
		t.Errorf("%d are kept", n)
	}
	for i := range many {
		if labels, err := s.LookUpNamespace(fmt.Sprint("shop-", i), time.Time{}); err != nil || labels["tier"] != "gold" {
			t.Fatalf("namespace %d: %v, %v", i, labels, err)
		}
	}
	if n := a.times("get"); n != many-50_000 {
		t.Errorf("%d live GETs", n)
	}
}

// TestPagedList follows a server that pages.
func TestPagedList(t *testing.T) {
	a := newAPI(t)
	a.now("list", func(w http.ResponseWriter, r *http.Request) {
		page := metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		name := "shop-2"
		if r.URL.Query().Get("continue") == "" {
			name, page.Continue = "shop-1", "more"
		}
		page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: gold()}}}
		answer(w, http.StatusOK, page)
	})
	s := newWorld(t).prepare("east", a.access())
	a.now("get", hangs)
	expectTier(t, s, "shop-1", "gold")
	expectTier(t, s, "shop-2", "gold")
}

// TestHugeEvent ends the watch, which begins again.
func TestHugeEvent(t *testing.T) {
	a := newAPI(t)
	w := newWorld(t)
	a.now("watch", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"shop","annotations":{"a":"`)
		padding := bytes.Repeat([]byte("x"), 1<<20)
		for range 64 {
			if _, err := w.Write(padding); err != nil {
				return
			}
		}
		<-r.Context().Done()
	})
	grown := heap(func() {
		w.prepare("east", a.access())
		eventually(t, "the watch is given up", func() bool { return w.Status()[0].Cause == kube.CauseTooLarge })
	})
	if grown > 32<<20 {
		t.Errorf("%d MiB of heap", grown>>20)
	}
}

// TestWordsOfTheAPI is a 403 with 3 MiB of text, line feeds and escape sequences:
// the log and the status have a short line of it, and what /readyz shows has none.
func TestWordsOfTheAPI(t *testing.T) {
	a := newAPI(t)
	text := strings.Repeat("webhook target is draining: not yet safe to stop\n\x1b[31m\u202e", 60_000)
	a.now("list", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusForbidden, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: text})
	})
	w := newWorld(t)
	w.prepare("east", a.access())
	eventually(t, "a log line", func() bool { return w.logged("stale") })
	status := w.Status()[0]
	if len(status.LastError) > 1024 || strings.ContainsFunc(status.LastError, func(c rune) bool { return !unicode.IsPrint(c) }) {
		t.Errorf("%d bytes: %.2000q", len(status.LastError), status.LastError)
	}
	if strings.Contains(status.LastError, `\`) {
		t.Errorf("quoted, not cleaned: %s", status.LastError)
	}
	if !strings.Contains(status.LastError, "not yet safe to stop") {
		t.Errorf("nothing of what it said: %q", status.LastError)
	}
	if want := "namespaces of cluster east: never listed: " + string(kube.CauseForbidden); status.String() != want {
		t.Errorf("the line reads %q, want %q", status, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.log.Len(); n > 4096 {
		t.Errorf("%d bytes of log", n)
	}
}

// TestAddressesOfAPIs dials nothing that may not be dialled (E2).
func TestAddressesOfAPIs(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	forbidden := kube.New(kube.Config{Allowed: func(at netip.AddrPort) error {
		return errors.New(at.String() + " is not for us")
	}})
	s := forbidden.Namespaces("east", a.access(), nil)
	expectError(t, s, "shop", "could not be asked")
	if n := a.times("get"); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestVersion is the lowest that was seen, so that a control plane that is being
// upgraded counts as the older one; what is known stays known.
func TestVersion(t *testing.T) {
	a := newAPI(t)
	a.kubernetes = "v1.36.3-eks-1234"
	s := newWorld(t).prepare("east", a.access())
	eventually(t, "the version is known", func() bool {
		return s.KubernetesVersion() == chain.KubernetesVersion{Major: 1, Minor: 36}
	})
	b := newAPI(t)
	b.kubernetes = "\n1.37"
	none := newWorld(t).prepare("west", b.access())
	eventually(t, "it was asked for", func() bool { return b.times("version") > 0 })
	if v := none.KubernetesVersion(); v.String() != "" {
		t.Errorf("the version is %v", v)
	}
}

// TestRedirects: what an API answers leads nowhere else, where the token would go, too.
func TestRedirects(t *testing.T) {
	a, elsewhere := newAPI(t), newAPI(t)
	a.put("shop", gold())
	elsewhere.put("shop", gold())
	for _, verb := range []string{"list", "get", "version"} {
		a.now(verb, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		})
	}
	s := newWorld(t).prepare("east", a.access())
	expectError(t, s, "shop", "could not be asked")
	eventually(t, "a look at the version", func() bool { return a.times("version") > 0 })
	for _, verb := range []string{"list", "get", "version"} {
		if n := elsewhere.times(verb); n > 0 {
			t.Errorf("%d requests (%s) went elsewhere", n, verb)
		}
	}
}

// TestListsAtOnce: clusters take turns with their lists, 32 at a time.
func TestListsAtOnce(t *testing.T) {
	const clusters, places = 40, 32
	a, w := newAPI(t), newWorld(t)
	var now, most atomic.Int64
	answered := make(chan struct{})
	a.now("list", func(out http.ResponseWriter, _ *http.Request) {
		for n := now.Add(1); most.Load() < n; {
			most.Store(n)
		}
		<-answered
		now.Add(-1)
		a.list(out)
	})
	var sources []chain.NamespaceSource
	for i := range clusters {
		sources = append(sources, w.Namespaces(fmt.Sprint("cluster-", i), a.access(), []string{"tier"}))
	}
	w.want(sources...)
	eventually(t, "all clusters are looked at", func() bool { return a.times("version") == clusters && now.Load() >= places })
	close(answered)
	eventually(t, "all clusters are watched", func() bool { return a.watched() == clusters })
	if got := most.Load(); got != places {
		t.Errorf("%d lists at a time, want %d", got, places)
	}
}
