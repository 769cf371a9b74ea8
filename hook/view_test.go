// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

const podReview = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"name":"p","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"p"},"n":0}}}`

// podView returns the View of a review whose memory is overwritten once it is released,
// of which those are told who are given.
func podView(t *testing.T, account hook.Account, freed ...func()) *hook.View {
	t.Helper()
	body := codec.NewBody([]byte(podReview), func(data []byte) {
		clear(data)
		for _, tell := range freed {
			tell()
		}
	})
	defer body.Release()
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	return hook.NewView(hook.Source{Review: r, Cluster: "east", Account: account, Transcoder: echo{}})
}

// echo is a Transcoder whose native objects are what they are made of.
type echo struct{}

func (echo) AppendNative(dst, _, _, object []byte) ([]byte, bool) {
	return append(dst, object...), true
}

func object(n int) *codec.Object {
	return &codec.Object{Raw: fmt.Appendf(nil, `{"metadata":{"name":"p"},"n":%d}`, n)}
}

// says is what a View says of its object and its uid, in every form, to conditions, and
// by itself.
func says(t *testing.T, v *hook.View, condition *celenv.Condition) string {
	t.Helper()
	q := hook.Question{View: v}
	holds, _, err := condition.Evaluate(v.Variables(), celenv.Budget, time.Time{})
	text := fmt.Sprintf("%d %s %s %v %v", v.Generation, v.UID, v.Object.Raw, holds, err)
	for e := codec.JSON; e <= codec.ProtobufNative; e++ {
		body, err := q.Payload(codec.Form{Version: codec.V1, Encoding: e})
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := q.Payload(codec.Form{Version: codec.V1, Encoding: e}); again != body {
			t.Errorf("%v is made twice", e)
		}
		if !bytes.Contains(body.Bytes(), v.Object.Raw) || !bytes.Contains(body.Bytes(), v.UID) {
			t.Errorf("%v: %q does not say %s", e, body.Bytes(), text)
		}
	}
	return text
}

// A generation says what it said whatever follows, as long as somebody has a reference
// to it; the next one says what is new. So it is too where nobody has one.
func TestGenerations(t *testing.T) {
	condition, err := celenv.NewCompiler().Compile(`object.n == 1 && cluster.name == 'east'`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`0 u-1 {"metadata":{"name":"p"},"n":0} false <nil>`,
		`1 u-1 {"metadata":{"name":"p"},"n":1} true <nil>`,
		`1 u-2 {"metadata":{"name":"p"},"n":1} true <nil>`,
		`2 u-2 {"metadata":{"name":"p"},"n":2} false <nil>`,
	}
	for _, held := range []bool{true, false} {
		account := &memory{}
		v := podView(t, account)
		var earlier []*hook.View
		for i, next := range []func() *hook.View{
			func() *hook.View { return v },
			func() *hook.View { return v.Mutated(object(1)) },
			func() *hook.View { return v.Renewed([]byte("u-2")) },
			func() *hook.View { return v.Mutated(object(2)) },
		} {
			before := v
			if v = next(); i > 0 && (v == before) == held {
				t.Errorf("held %v: another View %v", held, v != before)
			}
			if got := says(t, v, condition); got != want[i] {
				t.Errorf("held %v: it says %s, want %s", held, got, want[i])
			}
			if held {
				earlier = append(earlier, v.Retain())
			}
		}
		for i, e := range earlier {
			if got := says(t, e, condition); got != want[i] {
				t.Errorf("afterwards it says %s, want %s", got, want[i])
			}
			if e.Resource() != "/pods" {
				t.Errorf("it is about %s", e.Resource())
			}
			e.Release()
		}
		if !held && account.held > 3*len(podReview)+200 {
			t.Errorf("%d bytes are held for one generation", account.held)
		}
		uid := v.Review.UID
		if v.Release(); account.held != 0 || string(uid) == "u-1" {
			t.Errorf("held %v: %d bytes are held at the end, uid %q", held, account.held, uid)
		}
	}
}

// memory is an Account that counts what is held, and remembers for how much the last
// turn was.
type memory struct {
	held, turn int
	full       bool
}

func (m *memory) LookUp(string) (done func(), err error) { return func() {}, nil }

func (m *memory) Freed(bytes int) { m.held -= bytes }

func (m *memory) Turn(_ string, size int, _ time.Time) (func(), error) {
	m.turn = size
	return func() {}, nil
}

func (m *memory) Hold(_ string, body *codec.Body, _ bool) error {
	if m.full {
		return errors.New("full")
	}
	if !body.Charged() {
		m.held += body.Len()
		body.Charge(m)
	}
	return nil
}

// What a compressed form is made of is held as long as that, and counts.
func TestCompressedFormsCountWhole(t *testing.T) {
	account := &memory{}
	v := podView(t, account)
	q := hook.Question{View: v.Mutated(object(1))}
	for _, coding := range []codec.Coding{codec.Gzip, codec.Zstd} {
		before := account.held
		compressed, err := q.Payload(codec.Form{Version: codec.V1, Encoding: codec.Protobuf, Coding: coding})
		if err != nil {
			t.Fatal(err)
		}
		counted, want := account.held-before, compressed.Len()
		if before == 0 { // which is made once
			plain, err := q.Payload(codec.Form{Version: codec.V1, Encoding: codec.Protobuf})
			if err != nil {
				t.Fatal(err)
			}
			want += plain.Len()
		}
		if counted != want {
			t.Errorf("%s: %d bytes are counted, want %d", coding, counted, want)
		}
	}
	if q.Release(); account.held != 0 {
		t.Errorf("%d bytes are counted at the end", account.held)
	}
}

// A form for which there is no room is given to nobody, whoever asks next, until there
// is room.
func TestFormWithoutRoom(t *testing.T) {
	account := &memory{full: true}
	q := hook.Question{View: podView(t, account)}
	for _, full := range []bool{true, true, false} {
		account.full = full
		_, err := q.Payload(codec.Form{Version: codec.V1beta1})
		var call *hook.CallError
		if errors.As(err, &call) != full || full && call.Cause != hook.Shed {
			t.Errorf("full %v: %v", full, err)
		}
	}
	q.Release()
}

// A turn to make a form is for the object as it is now, however small the one was that
// came. JSON is copied, without one.
func TestTurnsAreForTheMutatedObject(t *testing.T) {
	large := &codec.Object{Raw: []byte(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)}
	for form, want := range map[codec.Form]int{
		{Version: codec.V1, Encoding: codec.Protobuf}: len(podReview) + len(large.Raw),
		{Version: codec.V1, Coding: codec.Gzip}:       len(podReview) + len(large.Raw),
		{Version: codec.V1}:                           0,
	} {
		account := &memory{turn: -1}
		q := hook.Question{View: podView(t, account).Mutated(large)}
		if _, err := q.Payload(form); err != nil || account.turn != want {
			t.Errorf("%+v: a turn for %d bytes, want %d; %v", form, account.turn, want, err)
		}
		q.Release()
	}
}

// waiting is an Account whose turns come when they are given.
type waiting struct {
	memory
	asked, give chan struct{}
}

func (w *waiting) Turn(_ string, size int, _ time.Time) (func(), error) {
	if size > 0 {
		w.asked <- struct{}{}
		<-w.give
	}
	return func() {}, nil
}

// A Hook that waits for a turn holds up nobody whose form is there, or needs none.
func TestNobodyWaitsForAnothersTurn(t *testing.T) {
	account := &waiting{asked: make(chan struct{}), give: make(chan struct{})}
	v := podView(t, account)
	defer v.Release()
	q, form := hook.Question{View: v}, codec.Form{Version: codec.V1, Coding: codec.Gzip}
	bodies := make(chan *codec.Body, 2)
	for range 2 {
		go func() {
			body, err := q.Payload(form)
			if err != nil {
				t.Error(err)
			}
			bodies <- body
		}()
		<-account.asked
	}
	for _, version := range []codec.Version{codec.V1, codec.V1beta1} {
		body, err := q.Payload(codec.Form{Version: version})
		if err != nil || !strings.Contains(string(body.Bytes()), version.APIVersion()) {
			t.Errorf("%v: %q, %v", version, body.Bytes(), err)
		}
	}
	close(account.give)
	if one, two := <-bodies, <-bodies; one != two {
		t.Error("a form is made twice")
	}
}

// The name of a resource is its group and itself, whether Kubernetes brings it along or not.
func TestResourceNames(t *testing.T) {
	for _, r := range [][2]string{{"", "pods"}, {"apps", "deployments"}, {"apps", "pods"}, {"example.com", "widgets"}, {"", ""}, {"a.b", strings.Repeat("x", 100)}} {
		review := codec.AcquireReview()
		review.Resource = codec.GroupVersionResource{Group: []byte(r[0]), Version: []byte("v1"), Resource: []byte(r[1])}
		v := hook.NewView(hook.Source{Review: review})
		if got := v.Resource(); got != r[0]+"/"+r[1] {
			t.Errorf("%q", got)
		}
		v.Release()
		codec.ReleaseReview(review)
	}
}
