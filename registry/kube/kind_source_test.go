// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
)

// published is the OpenAPI documents of an API, by path.
type published struct {
	mu        sync.Mutex
	documents map[string]string
	reads     map[string]int
}

func publish(documents map[string]string) *published {
	return &published{documents: documents, reads: map[string]int{}}
}

func (p *published) set(path, document string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.documents[path] = document
}

func (p *published) read(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads[path]
}

func (p *published) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/openapi/v3"), "/")
	p.reads[path]++
	if path != "" {
		_, _ = io.WriteString(w, p.documents[path])
		return
	}
	paths := map[string]any{"version": map[string]string{"serverRelativeURL": "/openapi/v3/version"}}
	for path, document := range p.documents {
		paths[path] = map[string]string{"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%d", path, len(document))}
	}
	answer(w, http.StatusOK, map[string]any{"paths": paths})
}

// document is one with a kind Widget whose spec has the fields, which are sets.
func document(group string, fields ...string) string {
	var properties []string
	for _, f := range fields {
		properties = append(properties, fmt.Sprintf(`%q:{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, f))
	}
	return fmt.Sprintf(`{"openapi":"3.0.0","paths":{"/a":{"get":{"b":[{}]}}},"components":{"schemas":{
		"w":{"type":"object","x-kubernetes-group-version-kind":[{"group":%q,"version":"v1","kind":"Widget"}],"properties":{"spec":{"allOf":[{"$ref":"#/components/schemas/s"}]}}},
		"s":{"type":"object","properties":{%s}}}}}`, group, strings.Join(properties, ","))
}

func widgets(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: "v1"}
}

// merged is what comes of merging b into a list of a, or why that is not known.
func merged(source chain.KindSource, group, field string, deadline time.Time) string {
	types, err := source.Types(widgets(group), deadline)
	if err != nil {
		return err.Error()
	}
	of, ok := types.Of(widgets(group).WithKind("Widget"))
	if !ok {
		return "no such kind"
	}
	spec := func(value string) map[string]any {
		return map[string]any{"spec": map[string]any{field: []any{value}}}
	}
	made, err := of.Merge(spec("a"), spec("b"))
	return fmt.Sprint(made, err)
}

func kindsOf(t *testing.T, s *kube.Sources, a *api, known ...schema.GroupVersion) chain.KindSource {
	t.Helper()
	source := s.Kinds("east", a.access(), known)
	source.Open(t.Context())
	t.Cleanup(source.Close)
	return source
}

const bothListed = "map[spec:map[list:[a b]]] <nil>"

// H30 What is known beforehand to be asked for is there once the source is open, and what is
// not is read when somebody asks, once; what has changed is read again, and what has not is
// not; what the cluster does not serve any more is not known any more.
func TestKindsOfCluster(t *testing.T) {
	a, p := newAPI(t), publish(map[string]string{"apis/a.example.com/v1": document("a.example.com", "list"), "apis/b.example.com/v1": document("b.example.com", "list")})
	a.now("openapi", p.serve)
	k := kindsOf(t, kube.New(kube.Config{}), a, widgets("a.example.com"))
	now := time.Now().Add(time.Nanosecond)
	if p.read("apis/a.example.com/v1") != 1 || p.read("apis/b.example.com/v1") != 0 {
		t.Error("it does not read what is known to be asked for")
	}
	if got := merged(k, "a.example.com", "list", now.Add(time.Minute)); got != bothListed {
		t.Error(got)
	}
	if got := merged(k, "b.example.com", "list", time.Time{}); got != bothListed {
		t.Error(got)
	}
	p.set("apis/a.example.com/v1", document("a.example.com", "list", "more"))
	p.set("apis/z.example.com/v1", document("z.example.com", "other"))
	// The next look is one at all of them, in their order.
	if got := merged(k, "z.example.com", "list", time.Time{}); !strings.Contains(got, "not declared") {
		t.Error(got)
	}
	if got := merged(k, "a.example.com", "more", time.Time{}); got != strings.ReplaceAll(bothListed, "list", "more") {
		t.Error(got)
	}
	if p.read("apis/a.example.com/v1") != 2 || p.read("apis/b.example.com/v1") != 1 {
		t.Errorf("documents are read again: %v", p.reads)
	}
	p.mu.Lock()
	delete(p.documents, "apis/a.example.com/v1")
	p.mu.Unlock()
	const gone = "it is none of the cluster's groups and versions"
	if got := merged(k, "zz.example.com", "list", time.Time{}); got != gone {
		t.Error(got)
	}
	if got := merged(k, "a.example.com", "list", time.Time{}); got != gone {
		t.Error(got)
	}
}

// H30 Sources of one cluster and access are one, as long as it is open. Clusters that publish
// the same have it once.
func TestKindsAreShared(t *testing.T) {
	a, s := newAPI(t), kube.New(kube.Config{})
	a.now("openapi", publish(map[string]string{"apis/a.example.com/v1": document("a.example.com", "list")}).serve)
	k := kindsOf(t, s, a, widgets("a.example.com"))
	if s.Kinds("east", a.access(), nil).Identity() != k.Identity() {
		t.Error("there are two of one cluster")
	}
	other := s.Kinds("west", a.access(), []schema.GroupVersion{widgets("a.example.com")})
	other.Open(t.Context())
	t.Cleanup(other.Close)
	one, _ := k.Types(widgets("a.example.com"), time.Time{})
	two, _ := other.Types(widgets("a.example.com"), time.Time{})
	if one == nil || one != two {
		t.Errorf("%p, %p", one, two)
	}
}

// H31 What an API does instead of publishing what is asked for: who asks is told within
// bounds, and nobody else is harmed.
func TestKindsThatAreNotKnown(t *testing.T) {
	const failed, forbidden = "the cluster's API could not be asked", "the cluster's API does not let the dispatcher read its OpenAPI documents"
	sends := func(text string) http.HandlerFunc {
		return publish(map[string]string{"apis/a.example.com/v1": text}).serve
	}
	parts := `{"components":{"schemas":{"a":{"type":"object","properties":{` + strings.Repeat(`"p":{"type":"string"},`, 60_000) + `"q":{}}}}}}`
	for name, row := range map[string]struct {
		does http.HandlerFunc
		want string
	}{
		"hangs":                      {hangs, "the cluster's API did not answer in time"},
		"forbids":                    {fails(403, metav1.StatusReasonForbidden), forbidden},
		"fails":                      {fails(500, metav1.StatusReasonInternalError), failed},
		"sends no index":             {says(200, "<html>"), failed},
		"sends an index without end": {endless(`{"paths":{`, `"a":{},`), failed},
		"sends nothing":              {sends(""), failed},
		"sends no schemas":           {sends(`{"components":{}}`), failed},
		"sends what is no schema":    {sends(`{"components":{"schemas":{"a":{"type":"no"}}}}`), failed},
		"sends too many parts":       {sends(parts), failed},
		"sends what is nested deep":  {sends(`{"paths":` + strings.Repeat("[", 1<<20)), failed},
		"sends another kind":         {sends(document("b.example.com")), "no such kind"},
		"sends a document without end": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/openapi/v3" {
				sends("x")(w, r)
				return
			}
			endless(`{"paths":[`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",`)(w, r)
		}, failed},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.now("openapi", row.does)
			var k chain.KindSource
			if name == "hangs" {
				k = kindsOf(t, kube.New(kube.Config{}), a)
			} else {
				k = kindsOf(t, kube.New(kube.Config{}), a, widgets("a.example.com"))
			}
			if got := merged(k, "a.example.com", "list", time.Now().Add(200*time.Millisecond)); got != row.want {
				t.Error(got)
			}
		})
	}
}

// H31 Asking for one document after the other has no more read than asking for all at once.
func TestBytesOfManyDocuments(t *testing.T) {
	const groups, bound, renewed = 8, 32 << 20, 10 * time.Second
	documents := map[string]string{}
	for i := range groups {
		documents[fmt.Sprintf("apis/g%d.example.com/v1", i)] = ""
	}
	a, index := newAPI(t), publish(documents)
	var sent atomic.Int64
	a.now("openapi", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openapi/v3" {
			index.serve(w, r)
			return
		}
		endless(`{"paths":[`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",`)(counting{w, &sent}, r)
	})
	k, begin := kindsOf(t, kube.New(kube.Config{}), a), time.Now()
	for i := range groups {
		of := widgets(fmt.Sprintf("g%d.example.com", i))
		for { // it may be late, but says so
			_, err := k.Types(of, time.Time{})
			if err == nil {
				t.Fatal("a document without end was read")
			}
			if !strings.Contains(err.Error(), "in time") {
				break
			}
		}
	}
	times := 1 + int64(time.Since(begin)/renewed)
	const underWay = 8 << 20 // in buffers of sockets
	if n := sent.Load(); n < bound/2 || n > times*(bound+underWay) {
		t.Errorf("%d bytes of documents were sent, %d may be read %d times", n, bound, times)
	}
}

// counting counts what is written.
type counting struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c counting) Write(data []byte) (int, error) {
	n, err := c.ResponseWriter.Write(data)
	c.sent.Add(int64(n))
	return n, err
}

// WriteString implements io.StringWriter.
func (c counting) WriteString(text string) (int, error) { return c.Write([]byte(text)) }

// H31 A group or version that is no part of a path is not asked for, and there is an end to
// how many are.
func TestGroupVersionsThatAreNotAsked(t *testing.T) {
	a, p := newAPI(t), publish(map[string]string{})
	a.now("openapi", p.serve)
	k := kindsOf(t, kube.New(kube.Config{}), a)
	for _, of := range []schema.GroupVersion{{Group: "..", Version: "v1"}, {Group: "example.com", Version: ".."}, {Group: "a/b", Version: "v1"}, {Version: ""}, {Group: "Example.com", Version: "v1"}} {
		if _, err := k.Types(of, time.Time{}); err == nil || err.Error() != "it is none of the cluster's groups and versions" {
			t.Errorf("%v: %v", of, err)
		}
	}
	if p.read("") != 0 {
		t.Error("the API was asked")
	}
	many := 0
	for i := range 100 {
		if _, err := k.Types(widgets(fmt.Sprintf("g%d.example.com", i)), time.Time{}); err.Error() == "there are more types than are kept" {
			many++
		}
	}
	if many != 100-64 {
		t.Errorf("%d are too many", many)
	}
}

// endless sends a beginning, and then the same again and again.
func endless(begin, again string) http.HandlerFunc {
	again = strings.Repeat(again, 1000)
	return func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = io.WriteString(w, again)
		}
	}
}
