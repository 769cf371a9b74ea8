// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// usual is a review as API servers send them, with managedFields.
const usual = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
	"uid":"u1","kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},
	"requestKind":{"group":"apps","version":"v1beta1","kind":"Deployment"},"requestResource":{"group":"apps","version":"v1beta1","resource":"deployments"},
	"name":"web","namespace":"shop","operation":"UPDATE",
	"userInfo":{"username":"system:serviceaccount:shop:deployer","uid":"7","groups":["system:serviceaccounts","system:authenticated"]},
	"object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop","uid":"o1","generation":3,"creationTimestamp":null,
		"labels":{"app":"web","tier":"front"},"annotations":{"note":"1","quoted":"\"a\"","kubectl.kubernetes.io/last-applied-configuration":"{\"a\":1}"},
		"managedFields":[{"manager":"kubectl","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{}}}}]},
		"spec":{"replicas":3}},
	"oldObject":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop","labels":{"app":"old"}}},
	"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}`

// plain are conditions as people write them, and what they come to for usual. Each is
// decided without CEL.
var plain = map[string]bool{
	`true`: true,
	`request.operation == 'CREATE' || request.operation == 'UPDATE'`:                                  true,
	`request.operation in ['CREATE', 'DELETE']`:                                                       false,
	`!(request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases')`:     true,
	`request.resource.version == 'v1beta1' && request.kind.version == 'v1'`:                           true,
	`request.requestKind.version == request.requestResource.version`:                                  true,
	`request.kind.kind != 'Pod'`:                                                                      true,
	`!('system:nodes' in request.userInfo.groups)`:                                                    true,
	`'system:authenticated' in request.userInfo.groups`:                                               true,
	`!request.userInfo.username.startsWith('system:node:')`:                                           true,
	`request.userInfo.username.endsWith(':deployer') && request.userInfo.username.contains(':shop:')`: true,
	`request.userInfo.username.matches('^system:serviceaccount:(kube-system|shop):')`:                 true,
	`matches(request.name, '^[a-z]+$') && size(request.name) == 3 && request.name.size() < 4`:         true,
	`request.namespace != 'kube-system' && !request.namespace.startsWith('openshift-')`:               true,
	`has(request.namespace) && !has(request.subResource)`:                                             true,
	`!request.dryRun`:                     true,
	`request.dryRun != true`:              true,
	`object != null && oldObject != null`: true,
	`object == null`:                      false,
	`object.kind == 'Deployment' && object.apiVersion.startsWith('apps/')`:                              true,
	`object.metadata.name == oldObject.metadata.name`:                                                   true,
	`object.metadata.namespace == 'shop' && object.metadata.uid == 'o1'`:                                true,
	`has(object.metadata.labels) && object.metadata.labels['app'] == 'web'`:                             true,
	`has(object.metadata.labels.tier) && object.metadata.labels.tier in ['front', 'back']`:              true,
	`object.metadata.labels.app != oldObject.metadata.labels.app`:                                       true,
	`'policy.example.com/exempt' in object.metadata.labels`:                                             false,
	`!('exempt' in object.metadata['labels']) && size(object.metadata.labels) == 2`:                     true,
	`has(object.metadata.annotations) && 'note' in object.metadata.annotations`:                         true,
	`has(object.metadata.annotations.note) && object.metadata.annotations['note'] == '1'`:               true,
	`!has(object.metadata.annotations.absent)`:                                                          true,
	`!has(object.metadata.generateName) && !has(object.metadata.deletionTimestamp)`:                     true,
	`!has(object.metadata.ownerReferences) && has(object.metadata.managedFields)`:                       true,
	`has(oldObject.metadata.annotations)`:                                                               false,
	`cluster.name == 'east' && cluster.labels['env'] == 'prod'`:                                         true,
	`!('zone' in cluster.labels) && has(cluster.labels.env) && size(cluster.labels) >= 1`:               true,
	`has(request.userInfo.groups) && size(request.userInfo.groups) > 1`:                                 true,
	`object.metadata.creationTimestamp == null`:                                                         true,
	`(request.name == 'x' || request.name == 'y' || request.name == 'web') && request.namespace != 'a'`: true,
}

func TestCommonConditionsNeedNoCEL(t *testing.T) {
	c, v := NewCompiler(), variablesOf(decode(t, usual))
	for expression, want := range plain {
		condition, err := c.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := decide(condition.predicate, v); !ok || got.holds != want {
			t.Errorf("%s: %v, decided %v", expression, got.holds, ok)
		}
		agrees(t, condition, variablesOf(v.Review))
		if holds, left, err := condition.Evaluate(v, Budget, time.Time{}); holds != want || err != nil || expression != `true` && left >= Budget {
			t.Errorf("%s: evaluated to %v, %d left, %v", expression, holds, left, err)
		}
	}
	if v.request != nil || v.object != nil || v.oldObject != nil || v.cluster != nil || v.results != nil {
		t.Error("CEL was asked")
	}
}

var metadataName = regexp.MustCompile(`\bm\b`)

// no is what a predicate comes to that leaves the condition to CEL.
const no = "CEL decides"

// doubtful are conditions for which a predicate must know what it does not know. In the
// expressions, m is object.metadata.
var doubtful = func() []doubt {
	metadata := func(members string) string {
		return strings.Replace(usual, `"generation":3,"creationTimestamp":null`, members, 1)
	}
	only := func(object string) string {
		before, rest, _ := strings.Cut(usual, `"object":`)
		_, after, _ := strings.Cut(rest, `"oldObject":`)
		return before + `"object":` + object + `,"oldObject":` + after
	}
	annotated := func(members string) string { return only(`{"metadata":{"annotations":{` + members + `}}}`) }
	return []doubt{
		{"an absent label", usual, `m.labels['none'] == 'a'`, no},
		{"an absent label, guarded", usual, `has(m.labels.none) && m.labels.none == 'a'`, "false"},
		{"absent on the left, decided on the right", usual, `m.labels.none == 'a' || true`, no},
		{"decided on the left, absent on the right", usual, `true || m.labels.none == 'a'`, "true"},
		{"decided on the left of &&", usual, `false && m.labels.none == 'a'`, "false"},
		{"absent in has", usual, `has(m.none.name)`, no},
		{"absent and negated", usual, `!(m.labels.none == 'a')`, no},
		{"absent and different", usual, `m.labels.none != 'a'`, no},
		{"absent in a list", usual, `m.labels.none in ['a']`, no},
		{"in an empty list", usual, `m.name in []`, no}, // for which CEL charges nothing
		{"absent in an empty list", usual, `m.labels.none in []`, no},
		{"absent as a key", usual, `m.labels.none in m.labels`, no},
		{"a pattern for what is absent", usual, `m.labels.none.matches('a')`, no},
		{"absent measured", usual, `size(m.labels.none) == 0`, no},
		{"labels absent", only(`{"metadata":{}}`), `'a' in m.labels`, no},
		{"labels absent, looked for", only(`{"metadata":{}}`), `has(m.labels)`, "false"},
		{"a label of labels absent", only(`{"metadata":{}}`), `has(m.labels.a)`, no},
		{"labels absent, counted", only(`{"metadata":{}}`), `size(m.labels) == 0`, no},
		{"labels null", only(`{"metadata":{"labels":null}}`), `'a' in m.labels`, no},
		{"labels null, looked for", only(`{"metadata":{"labels":null}}`), `has(m.labels)`, "true"},
		{"labels null, counted", only(`{"metadata":{"labels":null}}`), `size(m.labels) == 0`, no},
		{"labels empty", only(`{"metadata":{"labels":{}}}`), `'a' in m.labels || size(m.labels) == 1`, "false"},
		{"an empty label", only(`{"metadata":{"labels":{"a":""}}}`), `has(m.labels.a) && m.labels.a == ''`, "true"},
		{"a label with escapes, which the codec reads", only(`{"metadata":{"labels":{"\u0061":"\u0062\""}}}`), `m.labels.a == 'b"'`, "true"},
		{"the key labels with escapes", only(`{"metadata":{"l\u0061bels":{"a":"b"}}}`), `m.labels.a == 'b'`, "true"},
		{"another key with escapes hides what is absent", only(`{"metadata":{"\u0061":1}}`), `has(m.labels)`, no},
		{"annotations absent", only(`{"metadata":{}}`), `has(m.annotations.a)`, no},
		{"annotations null", only(`{"metadata":{"annotations":null}}`), `'a' in m.annotations`, no},
		{"annotations that are a list", only(`{"metadata":{"annotations":["a"]}}`), `'a' in m.annotations`, no},
		{"annotations that are a string", only(`{"metadata":{"annotations":"a"}}`), `'a' in m.annotations`, no},
		{"an annotation", annotated(`"a":"b"`), `m.annotations.a == 'b'`, "true"},
		{"an annotation with white space", annotated("\n\"a\" : \t\"b\" "), `m.annotations.a == 'b'`, "true"},
		{"an annotation with escapes", annotated(`"a":"\u0062"`), `m.annotations.a == 'b'`, no},
		{"an annotation with escapes, looked for", annotated(`"a":"\u0062"`), `has(m.annotations.a) && 'a' in m.annotations`, "true"},
		{"the key of an annotation with escapes", annotated(`"\u0061":"b"`), `m.annotations.a == 'b'`, no},
		{"another key with escapes", annotated(`"a":"b","\u0061":"c"`), `m.annotations.a == 'b'`, no},
		{"an annotation that is there twice", annotated(`"a":"b","a":"c"`), `m.annotations.a == 'b'`, no},
		{"another annotation that is there twice", annotated(`"a":"b","c":"b","c":"c"`), `m.annotations.a == 'b'`, "true"},
		{"annotations are not counted", annotated(`"a":"b"`), `size(m.annotations) == 1`, no},
		{"an annotation that is a number", annotated(`"a":1`), `m.annotations.a == '1'`, no},
		{"an annotation that is a map", annotated(`"a":{"b":"c"}`), `m.annotations.a == 'c'`, no},
		{"an annotation that is null", annotated(`"a":null`), `m.annotations.a == '1'`, "false"},
		{"an annotation that is null, looked for", annotated(`"a":null`), `has(m.annotations.a) && m.annotations.a == null`, "true"},
		{"an annotation that is a bool", annotated(`"a":true`), `m.annotations.a == true`, "true"},
		{"a bool is no string", annotated(`"a":true`), `m.annotations.a == 'true'`, no},
		{"a case variant is another key", metadata(`"Annotations":{"a":"b"}`), `has(m.Annotations) && !has(m.annotations.a)`, "true"},
		{"a dot in a key is no step", metadata(`"a.b":"c"`), `m['a.b'] == 'c' && !has(m.a)`, "true"},
		{"a path as a key", usual, `has(object.metadata) && object['metadata.name'] == 'web'`, no},
		{"a path as a key of the metadata", usual, `m['labels.app'] == 'web'`, no},
		{"a name that is null", only(`{"metadata":{"name":null}}`), `has(m.name)`, "true"},
		{"a name that is null, compared", only(`{"metadata":{"name":null}}`), `m.name == 'a'`, "false"},
		{"a name that is absent", only(`{"metadata":{}}`), `m.name == 'a'`, no},
		{"a name that is empty", only(`{"metadata":{"name":""}}`), `m.name == '' && has(m.name)`, "true"},
		{"a list is only looked for", metadata(`"finalizers":[]`), `has(m.finalizers)`, "true"},
		{"a list and null", metadata(`"finalizers":[]`), `m.finalizers != null`, no},
		{"a number", usual, `m.generation == 3`, no},
		{"metadata absent", only(`{"a":1}`), `has(object.metadata)`, no},
		{"metadata null", only(`{"metadata":null}`), `has(object.metadata)`, no},
		{"of metadata null", only(`{"metadata":null}`), `has(m.name)`, no},
		{"metadata and null", usual, `m == null`, no},
		{"no object", only(`null`), `object == null`, "true"},
		{"of no object", only(`null`), `m.name == 'web'`, no},
		{"of no object, looked for", only(`null`), `has(object.metadata) || has(object.kind)`, no},
		{"an empty object costs less", only(`{}`), `object == null`, no},
		{"an object with a kind", only(`{"kind":"a"}`), `object == null`, "false"},
		{"an object with metadata", only(`{"metadata":{}}`), `object != null`, "true"},
		{"no old object", connect, `oldObject == null`, "true"},
		{"options in place of an object", connect, `object.kind == 'PodExecOptions'`, "true"},
		{"options have no metadata", connect, `has(object.metadata.name)`, no},
		{"a kind that is absent", only(`{"metadata":{}}`), `has(object.kind)`, no},
		{"request.name absent", strings.Replace(usual, `"name":"web",`, ``, 1), `request.name == ''`, no},
		{"request.name absent, looked for", strings.Replace(usual, `"name":"web",`, ``, 1), `has(request.name)`, "false"},
		{"a required field that is empty", connect, `request.kind.group == '' && has(request.kind.group)`, "true"},
		{"no groups", connect, `'a' in request.userInfo.groups`, no},
		{"no groups, counted", connect, `size(request.userInfo.groups) == 0`, no},
		{"no groups, looked for", connect, `has(request.userInfo.groups)`, "false"},
		{"a label of the cluster that is absent", usual, `cluster.labels.zone == 'a'`, no},
		{"code points", only(`{"metadata":{"labels":{"a":"日本"}}}`), `size(m.labels.a) == 2`, "true"},
		{"a null among strings", annotated(`"a":null`), `m.annotations.a in ['a']`, no},
		{"cheap enough", only(`{"metadata":{"labels":{"a":"` + strings.Repeat("x", 9_000) + `"}}}`), `m.labels.a.contains('xy')`, "false"},
		{"too dear", only(`{"metadata":{"labels":{"a":"` + strings.Repeat("x", 10_000) + `"}}}`), `m.labels.a.contains('xy')`, no},
		{"a pattern that is too dear", only(`{"metadata":{"labels":{"a":"` + strings.Repeat("x", 1_000) + `"}}}`), `m.labels.a.matches('` + strings.Repeat("y", 40) + `')`, no},
		{"two strings that are too dear to compare", only(`{"metadata":{"name":"` + strings.Repeat("x", 20_000) + `"}}`), `m.name == m.name`, no},
		{"a long string and a short one", only(`{"metadata":{"name":"` + strings.Repeat("x", 20_000) + `"}}`), `m.name == 'x'`, "false"},
		{"a string that is too long", only(`{"metadata":{"name":"` + strings.Repeat("x", maxText+1) + `"}}`), `m.name == 'x'`, no},
		{"a string that is too long, looked for", only(`{"metadata":{"name":"` + strings.Repeat("x", maxText+1) + `"}}`), `has(m.name)`, "true"},
		{"a string that is just short enough", only(`{"metadata":{"name":"` + strings.Repeat("x", maxText) + `"}}`), `m.name == 'x'`, "false"},
		{"metadata that is too large to scan", metadata(`"long":"` + strings.Repeat("x", maxScanned) + `"`), `has(m.generateName)`, no},
		{"deep metadata", metadata(`"deep":` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000)), `has(m.generateName)`, "false"},
		{"the dearest that is cheap enough", only(`{"metadata":{"labels":{"a":"` + strings.Repeat("x", 9_955) + `"}}}`), `m.labels.a.contains('xy')`, "false"},
		{"the cheapest that is too dear", only(`{"metadata":{"labels":{"a":"` + strings.Repeat("x", 9_965) + `"}}}`), `m.labels.a.contains('xy')`, no},
		{"metadata that is just small enough", only(`{"metadata":{"a":"` + strings.Repeat("x", maxScanned-len(`{"a":""}`)) + `"}}`), `has(m.b)`, "false"},
		{"metadata that is just too large", only(`{"metadata":{"a":"` + strings.Repeat("x", 1+maxScanned-len(`{"a":""}`)) + `"}}`), `has(m.b)`, no},
		{"a member of something else than the metadata", usual, `object.spec.name == 'web'`, no},
		{"null and absent", usual, `null == m.none || null != m.labels.none`, no},
		{"null and an empty string", only(`{"metadata":{"name":""}}`), `m.name != null`, "true"},
		{"null and null", annotated(`"a":null,"b":null`), `m.annotations.a == m.annotations.b`, "true"},
		{"two objects", usual, `object == oldObject`, no},
		{"two lists", metadata(`"finalizers":[]`), `m.finalizers == m.finalizers`, no},
		{"two maps", usual, `m.labels == m.labels`, no},
		{"a string is no number", usual, `m.name < 3`, no},
		{"nor on the right", usual, `3 > m.name`, no},
		{"two strings are not ordered", usual, `m.name < m.name`, no},
		{"no more than", usual, `size(m.labels) <= 2 && size(m.labels) >= 2`, "true"},
		{"more than", usual, `size(m.labels) > 2 || size(m.labels) < 2`, "false"},
		{"a bool is no prefix", metadata(`"x":true`), `m.name.startsWith(m.x)`, no},
		{"a bool has none", metadata(`"x":true`), `m.x.startsWith('')`, no},
		{"a bool is no key", metadata(`"x":true`), `m.x in m.labels`, no},
		{"a bool has no size", metadata(`"x":true`), `size(m.x) == 0`, no},
		{"a bool matches nothing", metadata(`"x":true`), `m.x.matches('')`, no},
		{"a bool is in no list", metadata(`"x":true`), `m.x in ['']`, no},
		{"a string is not negated", usual, `!m.name`, no},
		{"a string is no operand", usual, `m.name && true`, no},
		{"nor on the right of &&", usual, `true && m.name`, no},
		{"a function that is no negation", usual, `bool(request.dryRun)`, no},
		{"a pattern for what has no predicate", usual, `m.name.lowerAscii().matches('web')`, no},
		{"one of what has no predicate", usual, `m.name.lowerAscii() in ['web']`, no},
		{"not what has no predicate", usual, `!(object.spec.replicas == 3)`, no},
		{"and what has no predicate", usual, `true && object.spec.replicas == 3`, no},
		{"or what has no predicate", usual, `object.spec.replicas == 3 || true`, no},
		{"the size of what has no predicate", usual, `size(m.name.lowerAscii()) == 3`, no},
		{"a ternary", usual, `request.dryRun ? true : false`, no},
		{"another function", usual, `m.name.lowerAscii() == 'web'`, no},
		{"a pattern that is not constant", usual, `m.name.matches(request.name)`, no},
		{"a list that is not constant", usual, `m.name in [request.name]`, no},
		{"a list of numbers", usual, `m.generation in [1]`, no},
		{"a macro", usual, `request.userInfo.groups.exists(g, g == 'a')`, no},
		{"a name of one's own", usual, `[1].all(request, request == 1)`, no},
		{"what is outside of the metadata", usual, `object.spec.replicas == 3`, no},
		{"a whole kind", usual, `request.kind == request.requestKind`, no},
		{"a namespace", usual, `namespaceObject == null`, no},
	}
}()

type doubt struct{ name, review, expression, want string }

func (d *doubt) text() string { return metadataName.ReplaceAllString(d.expression, "object.metadata") }

// What a predicate cannot be sure of it leaves to CEL, which finds the value or the error.
func TestPredicatesLeaveTheRestToCEL(t *testing.T) {
	c := NewCompiler()
	for _, tt := range doubtful {
		t.Run(tt.name, func(t *testing.T) {
			condition, err := c.Compile(tt.text())
			if err != nil {
				t.Fatal(err)
			}
			v := variablesOf(decode(t, tt.review))
			got := no
			if agrees(t, condition, v) {
				known, _ := decide(condition.predicate, v)
				got = fmt.Sprint(known.holds)
			}
			if got != tt.want {
				t.Errorf("%s: got %s, want %s", condition.expression, got, tt.want)
			}
		})
	}
}

// The fields of request and cluster are found by their joined names, which a key with a
// dot in it would be mistaken for: there is no such key, because they have types.
func TestTypedVariablesHaveNoKeys(t *testing.T) {
	c := NewCompiler()
	for _, expression := range []string{`request['kind.kind'] == 'a'`, `cluster['name'] == 'a'`, `request.userInfo['username'] == 'a'`, "request.`kind.kind` == 'a'"} {
		if condition, err := c.Compile(expression); err == nil {
			t.Errorf("%s compiles, with the predicate %v", expression, condition.predicate)
		}
	}
}

// What predicates scan of one View is bounded, however many there are.
func TestPredicatesScanSoMuch(t *testing.T) {
	c := NewCompiler()
	condition, err := c.Compile(`has(object.metadata.generateName)`)
	if err != nil {
		t.Fatal(err)
	}
	v := variablesOf(decode(t, strings.Replace(usual, `"generation":3`, `"long":"`+strings.Repeat("x", 10_000)+`"`, 1)))
	times := 0
	for ; times < 1000; times++ {
		if _, ok := decide(condition.predicate, v); !ok {
			break
		}
	}
	if most := maxScanned / 10_000; times == 0 || times > most {
		t.Errorf("scanned %d times, at most %d are meant", times, most)
	}
	if holds, left, err := condition.Evaluate(v, Budget, time.Time{}); holds || left >= Budget || err != nil {
		t.Errorf("CEL says %v, %d left, %v", holds, left, err)
	}
}

// A field that is found ends the scan: what follows, such as managedFields, costs nothing.
func TestPredicatesScanAsFarAsNeeded(t *testing.T) {
	condition, err := NewCompiler().Compile(`has(object.metadata.generateName)`)
	if err != nil {
		t.Fatal(err)
	}
	v := variablesOf(decode(t, strings.Replace(usual, `"name":"web","namespace":"shop","uid":"o1"`, `"generateName":"a","long":"`+strings.Repeat("x", 10_000)+`"`, 1)))
	for range 1000 {
		if known, ok := decide(condition.predicate, v); !ok || !known.holds {
			t.Fatalf("%v, decided %v after %d bytes", known.holds, ok, v.scanned)
		}
	}
}

// A predicate charges the budget of the webhook, and is of the object as mutated.
func TestPredicatesInAWebhook(t *testing.T) {
	c, v := NewCompiler(), variablesOf(decode(t, usual))
	condition, err := c.Compile(`object.metadata.labels.app == 'web' && has(object.metadata.annotations)`)
	if err != nil {
		t.Fatal(err)
	}
	if _, left, err := condition.Evaluate(v, 6, time.Time{}); left >= 0 || !errors.Is(err, ErrOutOfBudget) {
		t.Errorf("with 6 of the budget: %d left, %v", left, err)
	}
	if holds, left, err := condition.Evaluate(v, 9, time.Now().Add(-time.Hour)); !holds || left != 2 || err != nil {
		t.Errorf("with 9 of the budget: %v, %d left, %v", holds, left, err)
	}
	v.SetObject(objectOf(t, `{"metadata":{"labels":{"app":"web"}}}`))
	if holds, _, err := condition.Evaluate(v, Budget, time.Time{}); holds || err != nil {
		t.Errorf("after a mutation: %v, %v", holds, err)
	}
	if v.object != nil || v.request != nil {
		t.Error("CEL was asked")
	}
}

func TestPredicatesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector, pools drop what they like")
	}
	c, v := NewCompiler(), variablesOf(decode(t, usual))
	for expression := range plain {
		condition, err := c.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		v.scanned = 0
		if n := testing.AllocsPerRun(10, func() { _, _, _ = condition.Evaluate(v, Budget, time.Time{}) }); n > 0 {
			t.Errorf("%s: %v allocations", expression, n)
		}
	}
}

// FuzzPredicate tries any condition that compiles for any review that decodes: what a
// predicate says is what CEL says.
func FuzzPredicate(f *testing.F) {
	for _, expression := range slices.Sorted(maps.Keys(plain)) {
		f.Add(expression, usual)
	}
	for i := range doubtful {
		if d := &doubtful[i]; len(d.review) < 4<<10 {
			f.Add(d.text(), d.review)
		}
	}
	c := NewCompiler()
	fuzz.Run(f, func(t testing.TB, expression, text string) {
		condition, err := c.Compile(expression)
		if err != nil || condition.predicate == nil {
			return
		}
		body := codec.NewBody([]byte(text), nil)
		defer body.Release()
		review := codec.AcquireReview()
		defer codec.ReleaseReview(review)
		if review.Decode(body) != nil {
			return
		}
		v := variablesOf(review)
		if types.IsError(v.objectValue(review.Object.Raw)) || types.IsError(v.objectValue(review.OldObject.Raw)) {
			return // no API server has one with such a number
		}
		agrees(t, condition, v)
	})
}

// BenchmarkCondition compares what common conditions cost with their predicates and
// with CEL alone.
func BenchmarkCondition(b *testing.B) {
	c, r := NewCompiler(), decode(b, usual)
	for _, expression := range []string{
		`request.userInfo.username != 'x'`,
		`!('system:nodes' in request.userInfo.groups)`,
		`has(object.metadata.labels) && object.metadata.labels['app'] == 'web'`,
		`has(object.metadata.annotations) && 'note' in object.metadata.annotations`,
	} {
		condition, err := c.Compile(expression)
		if err != nil {
			b.Fatal(err)
		}
		alone := *condition
		alone.predicate = nil
		for _, each := range []*Condition{condition, &alone} {
			b.Run(fmt.Sprintf("%.40s/predicate=%v", expression, each.predicate != nil), func(b *testing.B) {
				b.ReportAllocs()
				v := variablesOf(r)
				for b.Loop() {
					*v = Variables{Input: v.Input}
					_, _, _ = each.Evaluate(v, Budget, time.Time{})
				}
			})
		}
	}
}

// CEL charges one for looking at a long string; predicates look at so much of them for one
// View, and leave the rest to CEL.
func TestPredicatesLookAtSoMuchText(t *testing.T) {
	condition, err := NewCompiler().Compile(`object.metadata.labels.app == 'x'`)
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]int{256: 10_000, 257: maxScanned / 257, 32 << 10: 8} {
		v := variablesOf(decode(t, strings.Replace(usual, `"app":"web"`, `"app":"`+strings.Repeat("x", length)+`"`, 1)))
		times := 0
		for ; times < 10_000; times++ {
			if _, ok := decide(condition.predicate, v); !ok {
				break
			}
		}
		if times != want {
			t.Errorf("a string of %d bytes is looked at %d times, want %d", length, times, want)
		}
	}
}

// However cheap predicates are, the deadline ends them.
func TestManyPredicatesEndAtTheDeadline(t *testing.T) {
	condition, err := NewCompiler().Compile(`request.userInfo.username == 'x'`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		deadline time.Time
		want     error
	}{{time.Now().Add(-time.Second), ErrInterrupted}, {time.Time{}, nil}, {time.Now().Add(time.Hour), nil}} {
		v := variablesOf(decode(t, usual))
		for n := 0; err == nil && n < maxUnwatched; n++ {
			_, _, err = condition.Evaluate(v, Budget, c.deadline)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
		err = nil
	}
}
