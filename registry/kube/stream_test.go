// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func reader(keys map[string]string, text string) namespaceReader {
	// One byte at a time: no token may depend on where a buffer ends.
	return namespaceReader{newDocument(iotest.OneByteReader(strings.NewReader(text))), keys}
}

func read(t *testing.T, keys map[string]string, text string) *metav1.PartialObjectMetadata {
	t.Helper()
	o, err := namespaceReader{newDocument(strings.NewReader(text)), keys}.namespace()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

// FuzzNamespace reads an object as encoding/json does, as far as what is kept goes.
func FuzzNamespace(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":{"name":"a","labels":{"tier":"gold","b":"c"},"resourceVersion":"12"}}`,
		`{"metadata":{"labels":{"tier":"\u0067\"\\"}},"spec":[{"a":[1,-2.5e3,true,null,"]}"]},{}]}`,
		`{"metadata":{"name":"a","labels":{"tier":"` + strings.Repeat("x", 100) + `"}}}`,
		`{"metadata":{"name":"` + strings.Repeat(`\u00e9`, 60) + `"}}`, `{"a":"\ud83d\ude00","metadata":{"name":"\ud83d\ude00"}}`,
		`[`, `{"metadata"`, `{"metadata":}`, `{,}`, `{"a":1,}`, `nul`, `"a"`, `{"metadata":{"labels":["tier"]}}`,
	} {
		f.Add(text)
	}
	keys := map[string]string{"tier": "tier"}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := reader(keys, text).namespace()
		var want struct {
			Metadata struct {
				Name, ResourceVersion string
				Labels                map[string]string
			}
		}
		if json.Unmarshal([]byte(text), &want) != nil || strings.Count(text, "etadata")+strings.Count(text, "abels") > 2 || strings.ContainsAny(text, "\\\ufffdK\u017f") {
			return // what is no JSON, or says a thing twice, may be read in any way
		}
		tier, there := want.Metadata.Labels["tier"]
		if len(want.Metadata.Name) > maxValue || len(tier) > maxValue {
			if err == nil {
				t.Errorf("%q: too long, and taken", text)
			}
			return
		}
		if !strings.Contains(text, `"metadata"`) || !strings.Contains(text, `"name"`) || !strings.Contains(text, `"labels"`) {
			return // encoding/json takes other spellings
		}
		labels := map[string]string{}
		if there {
			labels["tier"] = tier
		}
		if err != nil || got.Name != want.Metadata.Name || !maps.Equal(got.Labels, labels) {
			t.Errorf("%q: %q %v, %v; want %q %v", text, got.Name, got.Labels, err, want.Metadata.Name, labels)
		}
	})
}

func TestLongTexts(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		want  string
		whole bool
	}{
		{`"abc"`, 3, "abc", true},
		{`"abcd"`, 3, "abc", false},
		{`"` + strings.Repeat(`\u0061`, 4) + `"`, 4, "aaaa", true},
		{`"` + strings.Repeat(`\u0061`, 5) + `"`, 4, "aaa", false}, // escapes at the end are left out
		{`"` + strings.Repeat(`\ud83d\ude00`, 9) + `"`, 8, "😀😀", false},
		{`"` + strings.Repeat(`\"`, 900) + `"`, 4, `""""`, false},
		{`"` + strings.Repeat("x", 1<<20) + `"`, 4, "xxxx", false},
		{`12`, 4, "", true},
	} {
		d := reader(nil, tt.in+" 1")
		if got, whole, err := d.text(tt.limit); err != nil || got != tt.want || whole != tt.whole {
			t.Errorf("%.40s: %q, %t, %v; want %q, %t", tt.in, got, whole, err, tt.want, tt.whole)
		}
		if n, err := d.number(); n != 1 && !errors.Is(err, io.EOF) {
			t.Errorf("%.40s: what follows is %d, %v", tt.in, n, err)
		}
	}
}

// TestEvents reads a watch as API servers write it.
func TestEvents(t *testing.T) {
	r := reader(map[string]string{"tier": "tier"}, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","metadata":{"name":"a","resourceVersion":"7","labels":{"tier":"gold"}}}}
{"object":{"metadata":{"resourceVersion":"9"}},"type":"BOOKMARK"}
{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}
`)
	added, err := r.next()
	if o := added.Object.(*metav1.PartialObjectMetadata); err != nil || added.Type != watch.Added || o.Name != "a" || o.ResourceVersion != "7" || o.Labels["tier"] != "gold" {
		t.Errorf("%+v, %v", added, err)
	}
	bookmark, err := r.next()
	if o := bookmark.Object.(*metav1.PartialObjectMetadata); err != nil || bookmark.Type != watch.Bookmark || o.ResourceVersion != "9" {
		t.Errorf("%+v, %v", bookmark, err)
	}
	expired, err := r.next()
	if s := expired.Object.(*metav1.Status); err != nil || expired.Type != watch.Error || s.Code != 410 || s.Reason != metav1.StatusReasonExpired || s.Message != "too old" {
		t.Errorf("%+v, %v", expired, err)
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

// TestNoWrongAbsence: a label that cannot be right is an error and not an absent one.
func TestNoWrongAbsence(t *testing.T) {
	long := strings.Repeat("x", maxValue+1)
	for _, text := range []string{
		`{"metadata":{"name":"a","labels":{"tier":"` + long + `"}}}`,
		`{"metadata":{"name":"` + long + `"}}`,
		`{"metadata":{"name":"a","labels":{"tier":"gold"`,
		`{"metadata":{"name":"a","labels":[`,
		`nonsense`,
	} {
		if o, err := reader(map[string]string{"tier": "tier"}, text).namespace(); err == nil {
			t.Errorf("%.60s: %v", text, o.Labels)
		}
	}
}
