// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// version is an object Cluster/NAME in a state, made at second age.
func version(name, state string, age int64) *object {
	return newObject("Cluster/"+name, time.Unix(age, 0), map[string][]byte{"cluster." + name + ".json": []byte(state)})
}

// judging returns a judge that finds fault with what is called bad, and counts.
func judging(asked *int, bad func(*object) string) judge {
	return func(objects []*object) (*compile.Compiled, []manifest.Problem) {
		*asked++
		for _, o := range objects {
			if why := bad(o); why == "panic" {
				panic("index out of range")
			} else if why != "" {
				return nil, []manifest.Problem{{File: "cluster." + strings.TrimPrefix(o.key, "Cluster/") + ".json", Reason: why}}
			}
		}
		return &compile.Compiled{}, nil
	}
}

func stateOf(o *object) string {
	for _, data := range o.files {
		return string(data)
	}
	return ""
}

func keys(d decision) (all []string) {
	for _, o := range d.objects {
		all = append(all, strings.TrimPrefix(o.key, "Cluster/"))
	}
	return all
}

// An object with which the compiler panics is refused, and no other.
func TestPanicIsOneObjects(t *testing.T) {
	var asked int
	var wanted []*object
	for i := range 64 {
		wanted = append(wanted, version(fmt.Sprintf("c%02d", i), "good", int64(i)))
	}
	wanted[40] = version("c40", "panic", 40)
	d := accept(wanted, nil, nil, judging(&asked, func(o *object) string {
		if stateOf(o) == "panic" {
			return "panic"
		}
		return ""
	}))
	if len(d.objects) != 63 || len(d.refused) != 1 || d.refused[0].Object != "Cluster/c40" || !strings.Contains(d.refused[0].Problems[0].Reason, "panics the compiler") {
		t.Errorf("%d objects, %+v", len(d.objects), d.refused)
	}
	if asked > 20 {
		t.Errorf("%d compilations for one object of 64", asked)
	}
}

// However many objects are bad, a decision compiles so often and no more, and those that
// nobody got to come first in the next one.
func TestManyBad(t *testing.T) {
	bad := func(o *object) string {
		if stateOf(o) == "bad" {
			return "is bad"
		}
		return ""
	}
	var wanted []*object
	for i := range 1000 {
		wanted = append(wanted, version(fmt.Sprintf("b%03d", i), "bad", int64(i)))
	}
	good := version("good", "good", 5000)
	wanted = append(wanted, good)
	before := map[string]string{}
	for round := 1; ; round++ {
		var asked int
		d := accept(wanted, nil, before, judging(&asked, bad))
		if asked > maxJudgements {
			t.Fatalf("%d compilations", asked)
		}
		before = d.rejected
		if slices.Equal(keys(d), []string{"good"}) {
			break
		}
		if !d.unjudged || round > 30 {
			t.Fatalf("round %d: %v, unjudged %t", round, keys(d), d.unjudged)
		}
	}
	// Once they are known to be bad, a good one does not wait for them.
	var asked int
	next := version("next", "good", 6000)
	d := accept(append(wanted, next), map[string]*object{good.key: good}, before, judging(&asked, bad))
	if !slices.Equal(keys(d), []string{"good", "next"}) || d.unjudged {
		t.Errorf("%v, unjudged %t", keys(d), d.unjudged)
	}
	if asked > maxAgain+5 {
		t.Errorf("%d compilations for one change", asked)
	}
}

// Two objects of which each is at fault without the other are accepted together.
func TestTogether(t *testing.T) {
	var asked int
	pair := func(objects []*object) (*compile.Compiled, []manifest.Problem) {
		asked++
		has := map[string]bool{}
		for _, o := range objects {
			has[o.key] = true
		}
		if has["Cluster/bad"] || has["Cluster/left"] != has["Cluster/right"] {
			return nil, []manifest.Problem{{Reason: "no"}}
		}
		return &compile.Compiled{}, nil
	}
	d := accept([]*object{version("left", "", 1), version("bad", "", 2), version("other", "", 3), version("right", "", 4)}, nil, nil, pair)
	if got := keys(d); !slices.Contains(got, "other") || slices.Contains(got, "bad") {
		t.Errorf("%v", got)
	}
	d = accept([]*object{version("left", "", 1), version("other", "", 3), version("right", "", 4)}, nil, nil, pair)
	if got := keys(d); len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// Beyond the room for a resource only names are held, and room that becomes free is used.
func TestRoom(t *testing.T) {
	s := &store{changed: func() {}, items: map[string]*item{}}
	big := func(name string) *item {
		it, err := itemOf(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "data": map[string]any{"x": strings.Repeat("A", maxHeld/3)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := s.Add(big(name)); err != nil {
			t.Fatal(err)
		}
	}
	if s.items["b"].json == nil || s.items["c"].json != nil || s.items["d"].json != nil || s.held > maxHeld {
		t.Errorf("%d bytes are held", s.held)
	}
	r := &resolver{secrets: s.items}
	if o := r.resolve("Cluster", s.items["c"]); len(o.unresolved) == 0 {
		t.Error("what is not held is served")
	}
	_ = s.Delete(s.items["a"])
	_ = s.Update(big("c"))
	if s.items["c"].json == nil {
		t.Error("there is room")
	}
	_ = s.Replace([]any{big("e")}, "")
	if len(s.items) != 1 || s.held != len(s.items["e"].json) {
		t.Errorf("%d items, %d bytes", len(s.items), s.held)
	}
}
