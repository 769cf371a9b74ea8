// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// agrees fails if the condition's predicate decides, and CEL by itself does not say
// and charge the same. It reports whether the predicate decided.
func agrees(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, c *Condition, v *Variables) bool {
	t.Helper()
	got, ok := decide(c.predicate, v)
	if !ok {
		return false
	}
	alone := &Condition{expression: c.expression, program: c.program, loops: c.loops, objects: c.objects}
	holds, left, err := alone.Evaluate(v, Budget, time.Time{})
	if want := Budget - left; err != nil || holds != got.holds || want != int64(got.cost) {
		t.Fatalf("%s\nis %v at a cost of %d, CEL says %v at a cost of %d, %v\nobject %s\noldObject %s",
			c.expression, got.holds, got.cost, holds, want, err, v.Object.Raw, v.Review.OldObject.Raw)
	}
	return true
}

// Of random expressions of the grammar and random reviews, what a predicate says is
// what CEL says.
func TestPredicatesAgreeWithCEL(t *testing.T) {
	c, asked, decided := NewCompiler(), 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t}
		review := codec.AcquireReview()
		defer codec.ReleaseReview(review)
		body := codec.NewBody([]byte(d.review()), nil)
		defer body.Release()
		if err := review.Decode(body); err != nil {
			t.Fatal(err)
		}
		v := &Variables{Input: Input{Review: review, Object: &review.Object, ClusterName: "east", ClusterLabels: map[string]string{"env": "prod", "a": ""}}}
		for range 20 {
			if d.percent(10) {
				object := new(codec.Object)
				if err := codec.ScanObject(object, []byte(d.object())); err != nil {
					t.Fatal(err)
				}
				v.SetObject(object)
			}
			expression := d.truth(3)
			condition, err := c.Compile(expression)
			if err != nil {
				continue // a string is never null
			}
			if condition.predicate == nil && !strings.Contains(expression, "['metadata.name']") {
				t.Fatalf("%s has no predicate", expression)
			}
			asked++
			if agrees(t, condition, v) {
				decided++
			}
		}
	})
	t.Logf("predicates decided %d of %d", decided, asked)
	if decided < asked/3 {
		t.Errorf("predicates decided %d of %d", decided, asked)
	}
}

// draw draws expressions and reviews.
type draw struct{ *rapid.T }

func (d draw) one(of ...string) string { return rapid.SampledFrom(of).Draw(d.T, "one") }

func (d draw) percent(n int) bool { return rapid.IntRange(0, 99).Draw(d.T, "percent") < n }

// some returns each of them in so many percent of cases.
func (d draw) some(percent int, of ...string) []string {
	return slices.DeleteFunc(of, func(string) bool { return !d.percent(percent) })
}

// words are what strings come from, so that they are often equal.
var words = []string{"", "a", "web", "web-1", "kube-system", "dev", "é", "日本語の名前", "a.b/c", "prod", strings.Repeat("long ", 12), "it's"}

func (d draw) word() string { return rapid.SampledFrom(words).Draw(d.T, "word") }

func quote(s string) string { return fmt.Sprintf("%q", s) }

// truth draws an expression that is a bool.
func (d draw) truth(depth int) string {
	if depth > 0 {
		switch rapid.IntRange(0, 5).Draw(d.T, "logic") {
		case 0:
			return "!(" + d.truth(depth-1) + ")"
		case 1, 2:
			return "(" + d.truth(depth-1) + d.one(" && ", " || ") + d.truth(depth-1) + ")"
		}
	}
	switch rapid.IntRange(0, 13).Draw(d.T, "test") {
	case 13: // what is no bool is an error beside one, unless that decides
		untyped := func() string {
			return d.one("object.metadata.name", "object.metadata.labels.app", "oldObject.metadata.name", "object.kind", "object.metadata.labels", "oldObject")
		}
		return "(" + d.truth(0) + d.one(" && ", " || ") + untyped() + ")" + d.one(" == "+untyped(), " != "+untyped(), " in object.metadata.labels")
	case 0:
		return d.one("true", "false", "request.dryRun", "true == request.dryRun", "request.dryRun != false", "has(request.dryRun)")
	case 1, 2:
		return d.text() + d.one(" == ", " != ") + d.text()
	case 3:
		return d.text() + " in [" + quote(d.word()) + ", " + quote(d.word()) + "]"
	case 4, 5:
		return d.text() + " in " + d.collection()
	case 6:
		return d.text() + "." + d.one("startsWith", "endsWith", "contains") + "(" + d.text() + ")"
	case 7:
		return d.text() + ".matches(" + quote(d.one("^a", "web(-[0-9]+)?$", "", ".", "^[a-z.]+/[a-z]$", "本")) + ")"
	case 8, 9:
		return "has(" + d.one(d.field(), d.field(), d.collection(), "object.metadata", "oldObject.metadata") + ")"
	case 10:
		sized := d.one(d.collection(), d.text())
		return d.one("size("+sized+")", sized+".size()") + d.one(" == ", " != ", " < ", " <= ", " > ", " >= ") + d.one("0", "1", "2", "3", "-1")
	case 11:
		return d.one("object", "oldObject", "object.metadata", d.text(), "null") + d.one(" == null", " != null")
	}
	return d.text() + d.one(" == ", " != ") + quote(d.word())
}

func (d draw) text() string {
	if d.percent(20) {
		return quote(d.word())
	}
	return d.field()
}

// field draws a field that is a string or may be one.
func (d draw) field() string {
	object := d.one("object", "object", "oldObject", `object["metadata"]`)
	metadata := strings.TrimSuffix(object, `["metadata"]`) + d.one(".metadata", `["metadata"]`)
	switch rapid.IntRange(0, 5).Draw(d.T, "field") {
	case 0, 1:
		return "request." + d.one("kind.group", "kind.version", "kind.kind", "resource.group", "resource.version", "resource.resource", "subResource",
			"requestKind.group", "requestKind.version", "requestKind.kind", "requestResource.group", "requestResource.version", "requestResource.resource",
			"requestSubResource", "name", "namespace", "operation", "userInfo.username", "userInfo.uid")
	case 2:
		return d.one("cluster.name", "cluster.labels.env", "cluster.labels['a']", "cluster.labels.none")
	case 3:
		return metadata + "." + d.one("name", "namespace", "uid", "generateName", "resourceVersion", "deletionTimestamp", "finalizers", "generation", "labels", "annotations", "x")
	case 4:
		return object + d.one(".kind", ".apiVersion", "['kind']", "['metadata.name']")
	}
	return metadata + d.one(".labels", ".annotations", "['labels']") + d.one(".a", ".web", ".none", ".dev", "")
}

func (d draw) collection() string {
	return d.one("request.userInfo.groups", "object.metadata.labels", "oldObject.metadata.labels", "object.metadata.annotations", "object['metadata']['annotations']", "cluster.labels")
}

func (d draw) review() string {
	operation := d.one("CREATE", "UPDATE", "DELETE", "CONNECT")
	object, old := "null", "null"
	switch operation {
	case "CREATE":
		object = d.object()
	case "UPDATE":
		object, old = d.object(), d.object()
	case "DELETE":
		old = d.object()
	case "CONNECT":
		object = `{"kind":"PodExecOptions","apiVersion":"v1","command":["sh"]}`
	}
	members := []string{
		`"uid":"u1"`, `"operation":"` + operation + `"`, `"object":` + object, `"oldObject":` + old,
		`"kind":` + d.kind("kind"), `"resource":` + d.kind("resource"),
	}
	groups := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return draw{t}.json() }), 0, 4).Draw(d.T, "groups")
	user := d.some(80, `"username":`+d.json(), `"uid":`+d.json(), `"groups":[`+strings.Join(groups, ",")+`]`)
	members = append(members, `"userInfo":`+d.members(user))
	members = append(members, d.some(60, `"requestKind":`+d.kind("kind"), `"requestResource":`+d.kind("resource"), `"subResource":`+d.json(),
		`"requestSubResource":`+d.json(), `"name":`+d.json(), `"namespace":`+d.json(), `"dryRun":`+d.one("true", "false"), `"options":{}`)...)
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + d.members(members) + `}`
}

func (d draw) kind(name string) string {
	return d.members([]string{`"group":` + d.json(), `"version":` + d.json(), `"` + name + `":` + d.one(`"pods"`, `"web"`)})
}

// json draws a string, sometimes with escapes.
func (d draw) json() string {
	text := quote(d.word())
	if d.percent(15) {
		text = strings.ReplaceAll(text, "a", d.one(`\u0061`, `\n`))
	}
	return text
}

// members draws an object with these members in any order, with white space.
func (d draw) members(of []string) string {
	space := d.one("", "", " ", "\n\t")
	return "{" + space + strings.Join(rapid.Permutation(of).Draw(d.T, "order"), space+","+space) + space + "}"
}

func (d draw) object() string {
	members := []string{`"spec":{"replicas":3,"metadata":{"name":"inner"}}`}
	if d.percent(80) {
		members = append(members, `"kind":`+d.one(`"Pod"`, `"web"`, "null", `"w\u0065b"`))
	}
	if d.percent(80) {
		members = append(members, `"apiVersion":"v1"`)
	}
	if d.percent(90) {
		members = append(members, `"metadata":`+d.metadata())
	}
	if d.percent(20) {
		members = []string{}
	}
	return d.members(members)
}

func (d draw) metadata() string {
	if d.percent(5) {
		return "null"
	}
	var members []string
	for _, name := range []string{"name", "namespace", "uid", "generateName", "resourceVersion", "deletionTimestamp"} {
		switch {
		case d.percent(60):
			members = append(members, `"`+name+`":`+d.json())
		case d.percent(15):
			members = append(members, `"`+name+`":null`)
		}
	}
	if d.percent(70) {
		members = append(members, d.one(`"labels"`, `"labels"`, `"l\u0061bels"`)+":"+d.one("null", "{}", d.labels(), d.labels(), d.labels(), d.labels()))
	}
	if d.percent(70) {
		members = append(members, d.one(`"annotations"`, `"annotations"`, `"annotation\u0073"`)+":"+
			d.one("null", "{}", "[]", "3", `"a"`, d.annotations(), d.annotations(), d.annotations(), d.annotations()))
	}
	return d.members(append(members, d.some(20, `"finalizers":`+d.one("[]", `["a"]`, "null"), `"generation":3`, `"managedFields":[{"a":{"b":[1,"x"]}}]`,
		`"Annotations":{"a":"not this"}`, `"x":true`)...))
}

// keys draws different keys.
func (d draw) keys() []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "web", "dev", "a.b/c", "é", ""}), 0, 4, rapid.ID).Draw(d.T, "keys")
}

func (d draw) labels() string {
	var members []string
	for _, key := range d.keys() {
		members = append(members, d.key(key)+":"+d.json())
	}
	return d.members(members)
}

func (d draw) key(key string) string {
	if d.percent(10) {
		return strings.ReplaceAll(quote(key), "e", `\u0065`)
	}
	return quote(key)
}

// annotations draws what the codec does not look at: keys may be there twice, and
// values may be anything.
func (d draw) annotations() string {
	var members []string
	for _, key := range d.keys() {
		for range rapid.SampledFrom([]int{1, 1, 1, 1, 2}).Draw(d.T, "times") {
			members = append(members, d.key(key)+":"+d.one(d.json(), d.json(), d.json(), "3", "null", "true", "{}", `["a"]`))
		}
	}
	return d.members(members)
}
