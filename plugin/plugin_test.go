// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// review is an update of a pod.
const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"subResource":"status","name":"web","namespace":"shop","operation":"UPDATE",` +
	`"userInfo":{"username":"ann","uid":"7","groups":["dev","ops"],"extra":{"team":["blue","red"]}},"dryRun":true,` +
	`"object":{"metadata":{"name":"web","labels":{"n":"0"}},"spec":{"nodeName":"new"}},"oldObject":{"metadata":{"name":"web"},"spec":{"nodeName":"old"}}}}`

// attributes hands the Attributes of a review to use.
func attributes(t *testing.T, text string, use func(a *plugin.Attributes)) {
	t.Helper()
	used := false
	err := plugin.WithReview([]byte(text), nil, func(a *plugin.Attributes) { used = true; use(a) })
	if err != nil || !used {
		t.Fatalf("used %t, %v", used, err)
	}
}

// A plugin sees what a review says.
func TestAttributes(t *testing.T) {
	attributes(t, review, func(a *plugin.Attributes) {
		want := "UPDATE /v1, Kind=Pod /v1, Resource=pods status shop web true " +
			"{ann 7 [dev ops] map[team:[blue red]]} false"
		if got := fmt.Sprint(a.Operation(), " ", a.Kind(), " ", a.Resource(), " ", a.Subresource(), " ", a.Namespace(), " ", a.Name(), " ", a.DryRun(), " ", a.User(), " ", a.Reinvocation()); got != want {
			t.Errorf("it says %s\nwant %s", got, want)
		}
		if a.Is("", "pods") {
			t.Error("a subresource is taken for the resource")
		}
		if !strings.Contains(string(a.OldObject().Raw()), `"old"`) || !strings.Contains(string(a.Object().Raw()), `"new"`) {
			t.Errorf("the objects are %s and %s", a.Object().Raw(), a.OldObject().Raw())
		}
	})
	attributes(t, strings.Replace(review, `"subResource":"status",`, "", 1), func(a *plugin.Attributes) {
		if !a.Is("", "services", "pods") || a.Is("apps", "pods") || a.Is("", "services") {
			t.Error("the resource is taken for another")
		}
	})
}

// K6 An object is decoded once for all who ask, in each type that it is asked in.
func TestK6ObjectsAreShared(t *testing.T) {
	attributes(t, review, func(a *plugin.Attributes) {
		var (
			all  sync.WaitGroup
			pods [20]*corev1.Pod
		)
		for i := range pods {
			all.Go(func() { pods[i] = must(plugin.Decode[corev1.Pod](a.Object())) })
		}
		all.Wait()
		for _, pod := range pods {
			if pod != pods[0] || pod.Spec.NodeName != "new" {
				t.Fatalf("it is decoded as %p and %p, %q", pod, pods[0], pod.Spec.NodeName)
			}
		}
		old, again := must(plugin.Decode[corev1.Pod](a.OldObject())), must(plugin.Decode[corev1.Pod](a.OldObject()))
		if old != again || old == pods[0] || old.Spec.NodeName != "old" {
			t.Errorf("the old object is decoded as %p and %p, %q", old, again, old.Spec.NodeName)
		}
		partial := must(plugin.Decode[metav1.PartialObjectMetadata](a.Object()))
		untyped := must(a.Object().Unstructured())
		metadata, of := must(a.Object().Metadata()), must(a.OldObject().Metadata())
		if metadata.Labels["n"] != "0" || metadata != must(a.Object().Metadata()) || metadata == of {
			t.Errorf("the metadata are %v, and of the old object %v", metadata, of)
		}
		if partial.Labels["n"] != "0" || untyped.GetLabels()["n"] != "0" || untyped != must(a.Object().Unstructured()) {
			t.Errorf("in other types it is %v and %v", partial.Labels, untyped)
		}
	})
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// What is not there is nil; what is something else is an error without a word of it.
func TestDecodeWhatIsNot(t *testing.T) {
	text := strings.Replace(review, `{"nodeName":"new"}`, `{"nodeName":["swordfish"]}`, 1)
	text = text[:strings.Index(text, `"oldObject"`)] + `"oldObject":null}}`
	attributes(t, text, func(a *plugin.Attributes) {
		if metadata, err := a.OldObject().Metadata(); metadata != nil || err != nil {
			t.Errorf("the metadata of null are %v, %v", metadata, err)
		}
		if _, err := a.Object().Metadata(); err != nil {
			t.Errorf("the metadata of what is no Pod: %v", err)
		}
		if pod, err := plugin.Decode[corev1.Pod](a.OldObject()); pod != nil || err != nil || !a.OldObject().IsNull() {
			t.Errorf("null is %v, %v", pod, err)
		}
		for range 2 {
			_, err := plugin.Decode[corev1.Pod](a.Object())
			if got, want := fmt.Sprint(err), "the object cannot be decoded as v1.Pod: spec.nodeName is not a string"; got != want {
				t.Errorf("it says %q", got)
			}
		}
	})
}

// Decoding a large object waits for the cluster's turn; without one there is no answer.
func TestDecodeTakesItsTurn(t *testing.T) {
	v, _ := view(t, account{err: errors.New("no turn")})
	defer v.Release()
	asked := newInstance(t, func(a *plugin.Attributes) (plugin.Answer, error) {
		_, err := plugin.Decode[corev1.Pod](a.Object())
		return plugin.Answer{}, err
	})
	_, err := asked.ask(hook.Question{View: v, Deadline: time.Now().Add(time.Minute)})
	if call, ok := errors.AsType[*hook.CallError](err); !ok || call.Cause != hook.Shed {
		t.Errorf("it says %v", err)
	}
}

type account struct{ err error }

func (account) LookUp(string) (done func(), err error) { return func() {}, nil }

func (a account) Turn(string, int, time.Time) (func(), error) { return func() {}, a.err }
func (a account) Hold(string, *codec.Body, bool) error        { return a.err }

func view(t *testing.T, a hook.Account) (*hook.View, *codec.Review) {
	t.Helper()
	body, r := codec.NewBody([]byte(review), nil), codec.AcquireReview()
	defer body.Release()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	return hook.NewView(hook.Source{Review: r, Cluster: "east", Account: a}), r
}

// controller is a function that is a plugin.
type controller func(a *plugin.Attributes) (plugin.Answer, error)

func (c controller) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	return c(a)
}

type instance struct {
	*plugin.Instance
	t *testing.T
}

func newInstance(t *testing.T, c controller) instance {
	t.Helper()
	w := hook.NewWorkers(1)
	t.Cleanup(w.Close)
	made, invalid, undecodable := plugin.New("Test", nil, func(*struct{}) (any, field.ErrorList) { return c, nil }).Configure(nil, w)
	if len(invalid)+len(undecodable) > 0 || made.Mutates() || !made.Validates() {
		t.Fatal(invalid, undecodable)
	}
	return instance{made, t}
}

// answered takes an answer.
type answered chan struct {
	codec.Response
	error
}

func (a answered) Answered(_ uint64, resp codec.Response, err error) {
	a <- struct {
		codec.Response
		error
	}{resp, err}
}

func (i instance) ask(q hook.Question) (codec.Response, error) {
	to := make(answered, 1)
	i.Ask(i.t.Context(), q, hook.NewReceiver(to, 0))
	got := <-to
	return got.Response, got.error
}

// K7 What a plugin answers is kept within the limits of a webhook's answer.
func TestK7Answers(t *testing.T) {
	many := map[string]string{"with/slash": "dropped", "dispatcher.dev.x": "dropped"}
	for i := range 40 {
		many[fmt.Sprintf("k%02d", i)] = "v"
	}
	for name, row := range map[string]struct {
		given plugin.Answer
		want  func(codec.Response) bool
	}{
		"zero allows": {plugin.Answer{}, func(r codec.Response) bool { return cmp.Equal(r, codec.Response{Allowed: true}) }},
		"a denial without a code is 403": {plugin.Answer{Denied: &metav1.Status{Message: "no"}}, func(r codec.Response) bool {
			return cmp.Equal(r, codec.Response{Code: 403, Reason: "Forbidden", Message: "no"})
		}},
		"a denial": {plugin.Answer{Denied: &metav1.Status{Code: 429, Reason: "TooManyRequests", Message: "slow\u202edown\n\x1b[31m", Details: &metav1.StatusDetails{
			RetryAfterSeconds: 3, Causes: []metav1.StatusCause{{Type: "A", Field: "b", Message: "c"}},
		}}}, func(r codec.Response) bool {
			return cmp.Equal(r, codec.Response{
				Code: 429, Reason: "TooManyRequests", Message: "slow\ufffddown\n [31m", RetryAfterSeconds: 3, Causes: []codec.Cause{{Type: "A", Field: "b", Message: "c"}},
			})
		}},
		"a code that is none": {plugin.Answer{Denied: &metav1.Status{Code: 200, Message: "no"}}, func(r codec.Response) bool { return !r.Allowed && r.Code == 400 }},
		"warnings": {plugin.Answer{Warnings: []string{"", "a\nb", strings.Repeat("é", 5000)}}, func(r codec.Response) bool {
			return len(r.Warnings) == 2 && r.Warnings[0] == "a b" && r.Warnings[1] == strings.Repeat("é", 4096)
		}},
		"annotations": {plugin.Answer{Annotations: many}, func(r codec.Response) bool {
			return len(r.Annotations) == 32 && r.Annotations[0].Key == "k00" && r.DroppedAnnotations == 10
		}},
		"a patch of a Validator is none": {plugin.Answer{Patch: []plugin.Operation{plugin.Remove("a")}}, func(r codec.Response) bool { return r.Allowed && r.Patch == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := view(t, nil)
			defer v.Release()
			i := newInstance(t, func(*plugin.Attributes) (plugin.Answer, error) { return row.given, nil })
			if got, err := i.ask(hook.Question{View: v, Deadline: time.Now().Add(time.Minute)}); err != nil || !row.want(got) {
				t.Errorf("it is %+v, %v", got, err)
			}
		})
	}
}

// An error is no answer, in one line.
func TestErrors(t *testing.T) {
	v, _ := view(t, nil)
	defer v.Release()
	i := newInstance(t, func(*plugin.Attributes) (plugin.Answer, error) {
		return plugin.Answer{Denied: &metav1.Status{}}, errors.New("down\x1b[31m\nsince " + strings.Repeat("x", 5000))
	})
	resp, err := i.ask(hook.Question{View: v, Deadline: time.Now().Add(time.Minute)})
	call, ok := errors.AsType[*hook.CallError](err)
	if !ok || call.Cause != hook.BadAnswer || !strings.HasPrefix(call.Error(), "down [31m since x") || len(call.Error()) != 4096 || !cmp.Equal(resp, codec.Response{}) {
		t.Errorf("it is %v, %+v", err, resp)
	}
}

// A plugin's context ends at the deadline.
func TestContextEnds(t *testing.T) {
	v, _ := view(t, nil)
	defer v.Release()
	w := hook.NewWorkers(1)
	defer w.Close()
	made, _, _ := plugin.New("Test", nil, func(*struct{}) (any, field.ErrorList) { return waiter{}, nil }).Configure(nil, w)
	if _, err := (instance{made, t}).ask(hook.Question{View: v, Deadline: time.Now().Add(10 * time.Millisecond)}); err == nil {
		t.Error("there is an answer")
	}
}

type waiter struct{}

func (waiter) Validate(ctx context.Context, _ *plugin.Attributes) (plugin.Answer, error) {
	<-ctx.Done() // else Close waits for ever
	return plugin.Answer{}, ctx.Err()
}

// A denial is worded as kube-apiserver's plugins word theirs.
func TestForbid(t *testing.T) {
	const prefix = `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},"operation":"CREATE",`
	for rest, want := range map[string]string{
		`"name":"web","object":{"metadata":{"name":"other"}}`: `deployments.apps "web" is forbidden: no 1`,
		`"object":{"metadata":{"name":"web"}}`:                `deployments.apps "web" is forbidden: no 1`,
		`"object":{"metadata":{"generateName":"web-"}}`:       `deployments.apps "web-" is forbidden: no 1`,
		`"object":{"metadata":{}}`:                            `deployments.apps "Unknown" is forbidden: no 1`,
		`"object":null`:                                       `deployments.apps "Unknown" is forbidden: no 1`,
	} {
		attributes(t, "{"+prefix+rest+"}}", func(a *plugin.Attributes) {
			d := a.Forbid("no %d", 1).Denied
			if d.Message != want || d.Code != 403 || d.Reason != metav1.StatusReasonForbidden {
				t.Errorf("%s: %+v", rest, d)
			}
		})
	}
}

// Values are shared under a key until the object changes.
func TestOnce(t *testing.T) {
	type key struct{}
	attributes(t, review, func(a *plugin.Attributes) {
		n := 0
		for range 3 {
			if got, err := plugin.Once(a, key{}, func() (int, error) { n++; return n, nil }); got != 1 || err != nil {
				t.Errorf("it is %d, %v", got, err)
			}
		}
	})
}

// Operations are RFC 6902's.
func TestOperations(t *testing.T) {
	got, err := json.Marshal([]plugin.Operation{
		plugin.Add("v", "metadata", "annotations", "a.b/c~d"), plugin.Add([]int{1}, "list", plugin.End), plugin.Replace(false, "list", 0), plugin.Remove("x", 12),
	})
	const want = `[{"op":"add","path":"/metadata/annotations/a.b~1c~0d","value":"v"},{"op":"add","path":"/list/-","value":[1]},` +
		`{"op":"replace","path":"/list/0","value":false},{"op":"remove","path":"/x/12"}]`
	if string(got) != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// K1 Names are there once, and are never a webhook's.
func TestNewSet(t *testing.T) {
	good := plugin.New("Good", nil, func(*struct{}) (any, field.ErrorList) { return waiter{}, nil })
	named := func(name string) plugin.Plugin { p := good; p.Name = name; return p }
	for want, list := range map[string][]plugin.Plugin{
		"":                                       {good, named("Better2")},
		"there are two plugins of the name Good": {good, good},
		`plugin "a.example.com": a name has`:     {named("a.example.com")},
		`plugin "": a name has`:                  {named("")},
		`plugin "2nd": a name has`:               {named("2nd")},
		"plugin Made was not made by plugin.New": {{Name: "Made"}},
	} {
		if _, err := plugin.NewSet(list...); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// K12 A quantity that takes long to decode is no answer, at once, and what only looks like
// one is decoded. It is slow in any number of places, and in what a cluster stores.
func TestK12SlowQuantities(t *testing.T) {
	const number = "1e-1000000000"
	slow := `"containers":[` + strings.Repeat(`{"resources":{"limits":{"cpu":"`+number+`"}}},`, 1000) + "{}]"
	text := strings.Replace(review, `{"nodeName":"new"}`, "{"+slow+"}", 1)
	text = strings.Replace(text, `{"nodeName":"old"}`, `{"nodeName":"`+number+`"}`, 1)
	attributes(t, text, func(a *plugin.Attributes) {
		if _, err := plugin.Decode[corev1.Pod](a.Object()); err == nil || err.Error() != "the object cannot be decoded as v1.Pod: a quantity is too small or too long" {
			t.Errorf("it says %v", err)
		}
		if pod, err := plugin.Decode[corev1.Pod](a.OldObject()); err != nil || pod.Spec.NodeName != number {
			t.Errorf("what is no quantity: %v, %v", pod, err)
		}
	})
}
