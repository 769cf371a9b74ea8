// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

// changes is a Mutator that answers with a patch.
type changes []plugin.Operation

func (c changes) Mutate(context.Context, *plugin.Attributes) (plugin.Answer, error) {
	return plugin.Answer{Patch: c}, nil
}

// takesBack is a Validator that can take back what it did.
type takesBack struct {
	waiter
	names *[]string
}

func (t takesBack) Undo(_ context.Context, a *plugin.Attributes) {
	*t.names = append(*t.names, a.Name())
}

// K1 What is wrong with a configuration is told, and no plugin is made of it.
func TestK1Configure(t *testing.T) {
	w := hook.NewWorkers(0)
	defer w.Close()
	type settings struct {
		N int `json:"n"`
	}
	made := plugin.New("Test", nil, func(s *settings) (any, field.ErrorList) {
		switch s.N {
		case 1:
			return nil, field.ErrorList{field.Invalid(field.NewPath("n"), s.N, "must not be 1")}
		case 2:
			panic("swordfish")
		case 3:
			return "nothing", nil
		case 4:
			return changes{}, nil
		}
		return waiter{}, nil
	})
	for raw, want := range map[string]string{
		"":              "false true",
		`{"n":0}`:       "false true",
		`{"n":4}`:       "true false",
		`{"n":1}`:       `n: Invalid value: 1: must not be 1`,
		`{"n":2}`:       "plugin Test has panicked over it: a value of type string",
		`{"n":3}`:       "plugin Test is neither a Validator nor a Mutator",
		`{"n":"a"}`:     "cannot unmarshal string into Go struct field",
		`{"m":1}`:       `unknown field "m"`,
		`{"N":1}`:       `unknown field "N"`,
		`{"n":4,"n":4}`: `duplicate field "n"`,
		`{`:             "unexpected end",
	} {
		instance, invalid, undecodable := made.Configure([]byte(raw), w)
		got := fmt.Sprint(undecodable, invalid.ToAggregate())
		if instance != nil {
			got = fmt.Sprint(instance.Mutates(), " ", instance.Validates())
		}
		if !strings.Contains(got, want) || instance != nil && len(invalid)+len(undecodable) > 0 {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

// A Mutator is asked in its phase. What cannot be JSON is no answer.
func TestMutators(t *testing.T) {
	for want, patch := range map[string]changes{
		`[{"op":"remove","path":"/a"}]`:       {plugin.Remove("a")},
		"its patch cannot be written as JSON": {plugin.Add(math.Inf(1), "a")},
		"":                                    nil,
	} {
		w := hook.NewWorkers(1)
		made, _, _ := plugin.New("Test", nil, func(*struct{}) (any, field.ErrorList) { return patch, nil }).Configure(nil, w)
		v, r := view(t, nil)
		mutating := hook.NewView(hook.Source{Review: r, Mutating: true})
		resp, err := (instance{made, t}).ask(hook.Question{View: mutating, Deadline: time.Now().Add(time.Minute)})
		if got := string(resp.Patch); err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("it is %s, %v, want %s", got, err, want)
		}
		mutating.Release()
		v.Release()
		w.Close()
	}
}

// K9 The Hook of a plugin takes back what it did if the plugin can.
func TestK9Hook(t *testing.T) {
	w := hook.NewWorkers(0)
	defer w.Close()
	var names []string
	for _, controller := range []any{waiter{}, takesBack{names: &names}} {
		made, _, _ := plugin.New("Test", nil, func(*struct{}) (any, field.ErrorList) { return controller, nil }).Configure(nil, w)
		undoer, can := made.Hook().(hook.Undoer)
		if _, should := controller.(takesBack); can != should {
			t.Errorf("%T: %t", controller, can)
		}
		if can {
			v, _ := view(t, nil)
			undoer.Undo(t.Context(), hook.Question{View: v})
			v.Release()
		}
	}
	if fmt.Sprint(names) != "[web]" {
		t.Errorf("taken back is %s", names)
	}
}

// K6 A mutation has the object decoded anew, and not the old one.
func TestK6Generations(t *testing.T) {
	v, _ := view(t, nil)
	var pods []*corev1.Pod
	i := newInstance(t, func(a *plugin.Attributes) (plugin.Answer, error) {
		pods = append(pods, must(plugin.Decode[corev1.Pod](a.Object())), must(plugin.Decode[corev1.Pod](a.OldObject())))
		return plugin.Answer{}, nil
	})
	ask := func() {
		if _, err := i.ask(hook.Question{View: v, Deadline: time.Now().Add(time.Minute)}); err != nil {
			t.Error(err)
		}
	}
	ask()
	var changed codec.Object
	if err := codec.ScanObject(&changed, []byte(`{"metadata":{"name":"web"},"spec":{"nodeName":"changed"}}`)); err != nil {
		t.Fatal(err)
	}
	v = v.Mutated(&changed)
	ask()
	v.Release()
	if pods[0] == pods[2] || pods[2].Spec.NodeName != "changed" || pods[1] != pods[3] || pods[1].Spec.NodeName != "old" {
		t.Errorf("they are %p %p %p %p, %q", pods[0], pods[1], pods[2], pods[3], pods[2].Spec.NodeName)
	}
}

// known is a cluster of which something is known.
type known struct {
	hook.Caller // for what is not asked

	deadline time.Time
}

func (k *known) StoredLabels(name string, deadline time.Time) (map[string]string, error) {
	k.deadline = deadline
	return map[string]string{"name": name}, nil
}

func (*known) Version() (major, minor int) { return 1, 36 }

// A plugin sees what is known of the cluster, by its deadline, and that nothing is.
func TestCaller(t *testing.T) {
	caller, until := &known{}, time.Now().Add(time.Minute)
	i := newInstance(t, func(a *plugin.Attributes) (plugin.Answer, error) {
		labels, err := a.NamespaceLabels()
		major, minor := a.KubernetesVersion()
		return a.Forbid("%v %v %d.%d %s %v", labels, err, major, minor, a.Cluster(), a.ClusterLabels()), nil
	})
	for want, c := range map[string]hook.Caller{"map[name:shop] <nil> 1.36 east map[a:b]": caller, "map[] nothing is known of the cluster 0.0 east map[a:b]": nil} {
		held, r := view(t, nil)
		v := hook.NewView(hook.Source{Review: r, Cluster: "east", ClusterLabels: map[string]string{"a": "b"}, Caller: c})
		resp, err := i.ask(hook.Question{View: v, Deadline: until})
		if err != nil || !strings.HasSuffix(resp.Message, "is forbidden: "+want) {
			t.Errorf("%s, %v", resp.Message, err)
		}
		v.Release()
		held.Release()
	}
	if !caller.deadline.Equal(until) {
		t.Errorf("it is asked by %v", caller.deadline)
	}
}

// What is no review is an error, and nobody is handed it.
func TestWithReview(t *testing.T) {
	if err := plugin.WithReview([]byte("{}"), nil, func(*plugin.Attributes) { t.Error("it is used") }); err == nil {
		t.Error("it is read")
	}
}

// The turn is given back, whatever comes of decoding.
func TestTurnIsGivenBack(t *testing.T) {
	taken := 0
	v, _ := view(t, counting{&taken})
	defer v.Release()
	i := newInstance(t, func(a *plugin.Attributes) (plugin.Answer, error) {
		_, err := plugin.Decode[[]string](a.Object())
		_, none := plugin.Decode[corev1.Pod](a.Object())
		return plugin.Answer{}, errors.Join(err, none)
	})
	_, err := i.ask(hook.Question{View: v, Deadline: time.Now().Add(time.Minute)})
	if err == nil || err.Error() != "the object cannot be decoded as []string" || taken != 0 {
		t.Errorf("%v, %d turns are held", err, taken)
	}
}

type counting struct{ taken *int }

func (counting) LookUp(string) (done func(), err error) { return func() {}, nil }

func (c counting) Turn(string, int, time.Time) (func(), error) {
	*c.taken++
	return func() { *c.taken-- }, nil
}
func (counting) Hold(string, *codec.Body, bool) error { return nil }

// Plugins are in the order of their list.
func TestCompare(t *testing.T) {
	a := plugin.New("B", nil, func(*struct{}) (any, field.ErrorList) { return waiter{}, nil })
	b := a
	b.Name = "A"
	set, err := plugin.NewSet(a, b)
	if err != nil || set["B"].Compare(set["A"]) >= 0 || set["A"].Compare(set["B"]) <= 0 {
		t.Errorf("%v, %d", err, set["B"].Compare(set["A"]))
	}
}

// An object that is no T is an error that quotes nothing of it, whatever is wrong with it.
func TestUndecodable(t *testing.T) {
	for object, want := range map[string]string{
		`{"metadata":{"name":"secret"},"spec":1}`:                        "the object cannot be decoded as v1.Pod: spec is not a v1.PodSpec",
		`{"metadata":{"name":"web","creationTimestamp":"secret"}}`:       "the object cannot be decoded as v1.Pod",
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}`: "the object cannot be decoded as v1.Pod",
	} {
		text := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
			`"resource":{"group":"","version":"v1","resource":"pods"},"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":` + object + `}}`
		err := plugin.WithReview([]byte(text), nil, func(a *plugin.Attributes) {
			if _, err := plugin.Decode[corev1.Pod](a.Object()); err == nil || err.Error() != want {
				t.Errorf("%s: %v", object, err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}
