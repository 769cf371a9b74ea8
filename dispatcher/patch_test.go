// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// An object is parsed once for all patches. A Document that has become many times as large as the object is not kept while
// webhooks are called; the next patch finds the object as it is all the same.
func TestLargeDocumentIsNotKept(t *testing.T) {
	synctest.Test(t, testLargeDocument) // no time passes
}

func testLargeDocument(t *testing.T) {
	object := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"list":[` + strings.Repeat("0,", 40_000) + `0]}}`)
	a := &admission{
		Request:  Request{Cluster: &chain.Cluster{}, Review: &codec.Review{Operation: codec.Create}, Deadline: time.Now().Add(time.Minute)},
		capacity: overload.New(overload.Limits{}),
	}
	all, release := turns(a.capacity, "other")
	release()
	if err := codec.ScanObject(&a.Review.Object, object); err != nil {
		t.Fatal(err)
	}
	a.Review.Object.Raw = object
	a.subject = newSubject(a.Request, a.capacity, nil)
	apply := func(patch string, kept bool, generation int) {
		t.Helper()
		if _, err := a.apply(&chain.Entry{ID: hook.ID{Name: "w"}}, []byte(patch)); err != nil {
			t.Fatal(err)
		}
		if (a.document != nil) != kept || a.subject.Generation != generation {
			t.Errorf("kept %v, generation %d", a.document != nil, a.subject.Generation)
		}
	}
	apply(`[{"op":"add","path":"/metadata/labels","value":{"a":"1"}}]`, true, 1)
	parsed := a.document
	apply(`[{"op":"add","path":"/metadata/labels/c","value":"3"},{"op":"remove","path":"/metadata/labels/c"}]`, true, 2)
	if a.document != parsed {
		t.Error("the object is parsed twice")
	}
	apply(`[{"op":"add","path":"/spec/list/0","value":7}]`, false, 3)
	apply(`[{"op":"add","path":"/metadata/labels/b","value":"2"}]`, false, 4)
	apply(`[{"op":"add","path":"/metadata/labels/b","value":"2"}]`, false, 4)
	// Each patch is within the limits of one, not all together.
	many := `[{"op":"add","path":"/spec/list/0","value":8}` + strings.Repeat(`,{"op":"test","path":"/kind","value":"Pod"}`, 1_500) + "]"
	apply(many, false, 5)
	apply(many, false, 6)
	apply(`[{"op":"add","path":"/metadata/labels/c","value":"3"}]`, false, 7)
	for _, want := range []string{`"labels":{"a":"1","b":"2","c":"3"}`, `"list":[8,8,7,0,0`} {
		if !strings.Contains(string(a.subject.Object.Raw), want) {
			t.Errorf("the object lacks %s: %.200s", want, a.subject.Object.Raw)
		}
	}
	free, release := turns(a.capacity, "other")
	if release(); free != all {
		t.Errorf("%d turns of %d are taken", all-free, all)
	}
	a.Deadline = time.Now().Add(-time.Second)
	if _, err := a.apply(&chain.Entry{ID: hook.ID{Name: "w"}}, []byte(`[]`)); err == nil {
		t.Error("there is a turn after the deadline")
	}
}

// A patch is applied until the deadline of the admission.
func TestPatchEndsAtTheDeadline(t *testing.T) {
	object := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}`)
	for left, limited := range map[time.Duration]bool{time.Minute: false, -time.Millisecond: true} {
		a := &admission{Request: Request{Cluster: &chain.Cluster{}, Review: &codec.Review{Operation: codec.Create}, Deadline: time.Now().Add(left)}}
		if err := codec.ScanObject(&a.Review.Object, object); err != nil {
			t.Fatal(err)
		}
		a.subject = newSubject(a.Request, nil, nil)
		_, err := a.apply(&chain.Entry{ID: hook.ID{Name: "w"}}, []byte(`[{"op":"add","path":"/spec/a","value":1}]`))
		var slow *jsonpatch.Error
		if got := errors.As(err, &slow) && slow.Limit; got != limited {
			t.Errorf("C19 with %v left: %v", left, err)
		}
	}
}

// What a patch brings is checked as strictly as what the caller sent, anywhere in the
// object, and leaves the object as it was.
func TestPatchIsCheckedStrictly(t *testing.T) {
	for _, patch := range []string{
		`[{"op":"add","path":"/spec/deep","value":{"a":["\ud800"]}}]`,
		`[{"op":"add","path":"/Metadata","value":{}}]`,
		`[{"op":"add","path":"/metadata/labels","value":{"a":1}}]`,
		`[{"op":"replace","path":"","value":[]}]`,
		`[{"op":"replace","path":"/kind","value":"Secret"}]`,
		`[{"op":"add","path":"/spec/deep","value":` + strings.Repeat("[", 9_997) + strings.Repeat("]", 9_997) + `}]`,
	} {
		a := &admission{Request: Request{Cluster: &chain.Cluster{}, Review: &codec.Review{Operation: codec.Create}, Deadline: time.Now().Add(time.Minute)}}
		object := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}`)
		if err := codec.ScanObject(&a.Review.Object, object); err != nil {
			t.Fatal(err)
		}
		a.subject = newSubject(a.Request, nil, nil)
		var refusal *hook.Refusal
		if _, err := a.apply(&chain.Entry{ID: hook.ID{Name: "w"}}, []byte(patch)); !errors.As(err, &refusal) || a.subject.Generation != 0 || a.document != nil {
			t.Errorf("%.80s: %v, generation %d", patch, err, a.subject.Generation)
		}
	}
}
