// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
)

const update = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
	"uid":"u1",
	"kind":{"group":"apps","version":"v1","kind":"Deployment"},
	"resource":{"group":"apps","version":"v1","resource":"deployments"},"subResource":"scale",
	"requestKind":{"group":"apps","version":"v1beta1","kind":"Deployment"},
	"requestResource":{"group":"apps","version":"v1beta1","resource":"deployments"},"requestSubResource":"scale",
	"name":"web","namespace":"shop","operation":"UPDATE",
	"userInfo":{"username":"ada","uid":"7","groups":["dev","ops"],"extra":{"scopes":["a","b"]}},
	"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","creationTimestamp":null,"labels":{"app":"web"}},
		"spec":{"replicas":3,"ratio":1.5,"whole":1.0,"big":9223372036854775807,"list":[1,2]}},
	"oldObject":{"metadata":{"labels":{"app":"old"}},"spec":{"replicas":2}},
	"dryRun":true,
	"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl"}}}`

const connect = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
	"uid":"u2","kind":{"group":"","version":"v1","kind":"PodExecOptions"},
	"resource":{"group":"","version":"v1","resource":"pods"},"subResource":"exec",
	"name":"web","namespace":"shop","operation":"CONNECT",
	"object":{"kind":"PodExecOptions","apiVersion":"v1","command":["sh"]},"oldObject":null,"options":null}}`

func decode(t testing.TB, text string) *codec.Review {
	t.Helper()
	body := codec.NewBody([]byte(text), nil)
	r := codec.AcquireReview()
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	body.Release()
	t.Cleanup(func() { codec.ReleaseReview(r) })
	return r
}

func objectOf(t testing.TB, text string) *codec.Object {
	t.Helper()
	o := new(codec.Object)
	if err := codec.ScanObject(o, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

func variablesOf(r *codec.Review) *Variables {
	return &Variables{Input: Input{
		Review: r, Object: &r.Object,
		ClusterName: "east", ClusterLabels: map[string]string{"env": "prod"},
	}}
}

func evaluate(t *testing.T, c *Compiler, v *Variables, expression string) (bool, error) {
	t.Helper()
	condition, err := c.Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	holds, _, err := condition.Evaluate(v, Budget, time.Time{})
	return holds, err
}

func TestVariables(t *testing.T) {
	c := NewCompiler()
	stories := []struct {
		name, review string
		holds        []string
	}{
		{"object as unstructured", update, []string{
			`object.kind == 'Deployment' && object.metadata.labels.app == 'web'`,
			`type(object.spec.replicas) == int && object.spec.replicas == 3`,
			`type(object.spec.ratio) == double && type(object.spec.whole) == double`,
			`object.spec.big == 9223372036854775807`,
			`object.spec.list.all(i, i < 3)`,
			`object.metadata.creationTimestamp == null`,
			`!has(object.spec.absent)`,
		}},
		{"oldObject", update, []string{`oldObject.spec.replicas == 2 && object.spec.replicas > oldObject.spec.replicas`}},
		{"request", update, []string{
			`request.kind.group == 'apps' && request.kind.version == 'v1' && request.kind.kind == 'Deployment'`,
			`request.resource.resource == 'deployments' && request.subResource == 'scale'`,
			`request.resource.version == 'v1beta1'`,
			`request.requestKind.version == 'v1beta1' && request.requestResource.version == 'v1beta1' && request.requestSubResource == 'scale'`,
			`request.name == 'web' && request.namespace == 'shop' && request.operation == 'UPDATE' && request.dryRun`,
			`request.userInfo.username == 'ada' && request.userInfo.uid == '7' && 'ops' in request.userInfo.groups`,
			`request.userInfo.extra['scopes'] == ['a', 'b']`,
			`request.options.fieldManager == 'kubectl'`,
		}},
		{"cluster", update, []string{
			`cluster.name == 'east'`, `cluster.labels['env'] == 'prod'`, `!('zone' in cluster.labels)`,
		}},
		{"namespaceObject is null, as in kube-apiserver", update, []string{`namespaceObject == null`}},
		{"CONNECT", connect, []string{
			`object.command == ['sh']`, `oldObject == null`, `!has(object.metadata)`,
			`request.options == null`, `request.dryRun == false`,
			`!has(request.userInfo.username)`,
			`!has(request.userInfo.groups) && !has(request.userInfo.extra)`,
			`request.requestResource.resource == 'pods' && request.requestSubResource == 'exec'`,
		}},
	}
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			v := variablesOf(decode(t, story.review))
			for _, expression := range story.holds {
				if holds, err := evaluate(t, c, v, expression); err != nil || !holds {
					t.Errorf("%s: got %v, %v", expression, holds, err)
				}
			}
		})
	}
}

func TestObjectIsConvertedOnlyIfAskedFor(t *testing.T) {
	c, r := NewCompiler(), decode(t, update)
	v := &Variables{Input: Input{Review: r, Object: objectOf(t, `{"a":1e999}`)}}
	if holds, err := evaluate(t, c, v, `request.name == 'web' && size(cluster.labels) == 0`); err != nil || !holds {
		t.Errorf("got %v, %v", holds, err)
	}
	if _, err := evaluate(t, c, v, `object.a > 1.0`); err == nil || !strings.Contains(err.Error(), "prepare the object") {
		t.Errorf("a number that nothing can hold: got %v", err)
	}
}

func TestSetObject(t *testing.T) {
	c, v := NewCompiler(), variablesOf(decode(t, update))
	const expression = `object.spec.replicas == 3 && oldObject.spec.replicas == 2`
	if holds, err := evaluate(t, c, v, expression); err != nil || !holds {
		t.Fatalf("got %v, %v", holds, err)
	}
	old, next := v.oldObject, new(Variables)
	next.Inherit(v)
	if holds, err := evaluate(t, c, next, expression); err != nil || !holds || next.object != v.object {
		t.Errorf("what is inherited says %v, %v", holds, err)
	}
	v.SetObject(objectOf(t, `{"spec":{"replicas":4}}`))
	if holds, err := evaluate(t, c, v, expression); err != nil || holds {
		t.Errorf("after a mutation: got %v, %v", holds, err)
	}
	if holds, err := evaluate(t, c, next, expression); err != nil || !holds {
		t.Errorf("of the object before: got %v, %v", holds, err)
	}
	if v.oldObject != old || next.oldObject != old {
		t.Error("the old object was converted again")
	}
	if v.Forget(); v.object != nil || v.oldObject != nil {
		t.Error("converted objects are kept")
	}
}

// Of Variables that were asked before, a condition takes from each budget what it
// took from the first, and says the same.
func TestResultsAreKept(t *testing.T) {
	c, v := NewCompiler(), variablesOf(decode(t, update))
	for _, expression := range []string{`request.name == 'web'`, `object.spec.list.exists(i, i > 3)`, `object.absent == 1`} {
		condition, err := c.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		holds, left, first := condition.Evaluate(v, Budget, time.Time{})
		again, leftAgain, second := condition.Evaluate(v, Budget, time.Now().Add(time.Hour))
		if again != holds || leftAgain != left || second != first || left >= Budget { //nolint:errorlint // the very same error
			t.Errorf("%s: first %v, %d, %v; then %v, %d, %v", expression, holds, left, first, again, leftAgain, second)
		}
		if _, _, err := condition.Evaluate(v, 1, time.Time{}); !errors.Is(err, ErrOutOfBudget) {
			t.Errorf("%s: got %v with nothing left of the budget", expression, err)
		}
	}
}

// Interrupts are looked at in loops, which macros make.
func TestLoops(t *testing.T) {
	c := NewCompiler()
	for expression, want := range map[string]bool{
		`request.name == 'web' && 'a' in request.userInfo.groups`: false,
		`has(object.spec.list)`:                                   false,
		`object.spec.list.all(i, i < 3)`:                          true,
		`size(object.spec.list.map(i, i)) == 2`:                   true,
		`[[1]].exists(l, 1 in l)`:                                 true,
	} {
		condition, err := c.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if condition.loops != want {
			t.Errorf("%s: got %v", expression, condition.loops)
		}
	}
}

// The cost of contains is the product of both sizes over 100; it takes no time.
func TestCost(t *testing.T) {
	c := NewCompiler()
	v := &Variables{Input: Input{
		Review: decode(t, connect),
		Object: objectOf(t, fmt.Sprintf(`{"text":%q,"list":[1,2,3]}`, strings.Repeat("a", 11_000))),
	}}
	const cheap, tooDear, inLoop = `request.name == 'web'`,
		`object.text.contains(object.text)`,
		`object.list.all(i, object.text.contains(object.text))`
	t.Run("what it costs is taken from the budget", func(t *testing.T) {
		condition, err := c.Compile(cheap)
		if err != nil {
			t.Fatal(err)
		}
		if _, left, err := condition.Evaluate(v, Budget, time.Time{}); err != nil || left <= 0 || left >= Budget {
			t.Errorf("got %d left, %v", left, err)
		}
		if _, left, err := condition.Evaluate(v, 1, time.Time{}); left >= 0 || !errors.Is(err, ErrOutOfBudget) {
			t.Errorf("got %d left, %v, want to run out of it", left, err)
		}
	})
	for _, expression := range []string{tooDear, inLoop} {
		t.Run("the limit of one expression: "+expression, func(t *testing.T) {
			condition, err := c.Compile(expression)
			if err != nil {
				t.Fatal(err)
			}
			_, left, err := condition.Evaluate(v, Budget, time.Time{})
			if err == nil || !strings.Contains(err.Error(), "cost limit exceeded") || left < 0 {
				t.Errorf("got %d left, %v", left, err)
			}
			if spent := Budget - left; spent > 1_300_000 { // the first step over the limit is the last
				t.Errorf("spent %d, with a limit of 1,000,000", spent)
			}
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	c, r := NewCompiler(), decode(b, update)
	for _, expression := range []string{`request.userInfo.username != 'x'`, `object.spec.replicas > 2`, `object.spec.list.all(i, i < 3)`} {
		condition, err := c.Compile(expression)
		if err != nil {
			b.Fatal(err)
		}
		for _, webhooks := range []int{1, 5} {
			b.Run(fmt.Sprintf("%.7s %d", expression, webhooks), func(b *testing.B) {
				deadline := time.Now().Add(time.Hour)
				b.ReportAllocs()
				for b.Loop() {
					v := variablesOf(r)
					for range webhooks {
						_, _, _ = condition.Evaluate(v, Budget, deadline)
					}
				}
			})
		}
	}
}
