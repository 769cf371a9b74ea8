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
		Request:    Request{Cluster: &chain.Cluster{}, Review: &codec.Review{Operation: codec.Create}, Deadline: time.Now().Add(time.Minute)},
		dispatcher: &Dispatcher{capacity: overload.New(overload.Limits{})},
	}
	all, release := turns(a.dispatcher.capacity, "other")
	release()
	if err := codec.ScanObject(&a.Review.Object, object); err != nil {
		t.Fatal(err)
	}
	a.Review.Object.Raw = object
	a.subject = newSubject(a.Request, a.dispatcher.capacity, nil)
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
	free, release := turns(a.dispatcher.capacity, "other")
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

// patching returns an admission that creates the object, without a bound on its memory.
func patching(t *testing.T, object []byte, deadline time.Duration) *admission {
	t.Helper()
	a := &admission{Request: Request{Cluster: &chain.Cluster{}, Review: &codec.Review{Operation: codec.Create}, Deadline: time.Now().Add(deadline)}}
	if err := codec.ScanObject(&a.Review.Object, object); err != nil {
		t.Fatal(err)
	}
	a.Review.Object.Raw = object
	a.subject = newSubject(a.Request, nil, nil)
	return a
}

// A parsed object is kept while webhooks are called as long as it takes half as many bytes
// as the object has, and 64 KiB, not one more.
func TestFootprintOfWhatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no patch takes any time
		const patch = `[{"op":"add","path":"/spec/list/0","value":7}]`
		object := func(padding int) []byte {
			return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"list":[` + strings.Repeat("0,", 20_000) + `0],"text":"` + strings.Repeat("x", padding) + `"}}`)
		}
		decoded, err := jsonpatch.Decode([]byte(patch), jsonpatch.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := jsonpatch.Open(object(0), jsonpatch.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parsed.Apply(decoded, jsonpatch.Limits{}); err != nil {
			t.Fatal(err)
		}
		least := 2*(parsed.Footprint()-maxFootprint) - len(object(0)) - len("7,")
		if least < 0 {
			t.Fatalf("the footprint is %d bytes only", parsed.Footprint())
		}
		for padding, kept := range map[int]bool{least - 1: false, least: true, least + 1: true} {
			a := patching(t, object(padding), time.Minute)
			if _, err := a.apply(&chain.Entry{ID: hook.ID{Name: "w"}}, []byte(patch)); err != nil {
				t.Fatal(err)
			}
			if (a.document != nil) != kept {
				t.Errorf("an object of %d bytes, with %d besides: kept %v", len(a.subject.Object.Raw), parsed.Footprint(), a.document != nil)
			}
		}
	})
}

// Work on an object and a patch that are large together takes its turn.
func TestTurnOfALargePatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capacity := overload.New(overload.Limits{})
		_, release := turns(capacity, "other")
		defer release()
		half := strings.Repeat("x", overload.LightWork/2)
		a := patching(t, []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"a":"`+half+`"}}`), time.Second)
		a.subject = newSubject(a.Request, capacity, nil)
		add := func(value string) error {
			_, err := a.apply(&chain.Entry{ID: hook.ID{Name: "w"}}, []byte(`[{"op":"add","path":"/spec/b","value":"`+value+`"}]`))
			return err
		}
		if err := add("small"); err != nil {
			t.Errorf("a small patch waits: %v", err)
		}
		var call *hook.CallError
		if err := add(half); !errors.As(err, &call) || call.Cause != hook.Shed {
			t.Errorf("a large patch does not wait: %v", err)
		}
	})
}

// A patch that fails leaves nothing of itself behind, also where its first operations
// applied, and the object is not made again of one that takes too long to read.
func TestPatchFails(t *testing.T) {
	a := patching(t, []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"text":"`+strings.Repeat("x", 1<<20)+`"}}`), time.Minute)
	apply := func(patch string) error {
		_, err := a.apply(&chain.Entry{ID: hook.ID{Name: "w"}}, []byte(patch))
		return err
	}
	const one, broken, two = `[{"op":"add","path":"/spec/one","value":1}]`,
		`[{"op":"add","path":"/spec/broken","value":1},{"op":"remove","path":"/nope"}]`, `[{"op":"add","path":"/spec/two","value":2}]`
	if err := apply(one); err != nil {
		t.Fatal(err)
	}
	var refusal *hook.Refusal
	if err := apply(broken); !errors.As(err, &refusal) || a.document != nil || a.patches != 1 || string(a.patch) != one {
		t.Errorf("%v, patch %s of %d", err, a.patch, a.patches)
	}
	a.Deadline = time.Now().Add(-time.Second)
	if err := apply(two); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "the object cannot be patched") {
		t.Errorf("after the deadline: %v", err)
	}
	a.Deadline = time.Now().Add(time.Minute)
	if err := apply(two); err != nil {
		t.Error(err)
	}
	if got := string(a.subject.Object.Raw); !strings.Contains(got, `"one":1,"two":2`) || strings.Contains(got, "broken") || a.patches != 2 {
		t.Errorf("%d patches give %.100s ... %s", a.patches, got, got[len(got)-100:])
	}
}
