// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// The cost of contains is the product of both sizes over 100; it takes no time.
const (
	isTrue   = `request.name == 'it'`
	isFalse  = `request.name != 'it'`
	fails    = `object.spec.nope == 1`
	costly   = `object.spec.long.contains(object.spec.long)`     // 810,000 of the 1,000,000 that one may cost
	tooDear  = `object.spec.longer.contains(object.spec.longer)` // 1,210,000
	ofOthers = `cluster.name == 'west'`
)

func withConditions(policy admissionregistrationv1.FailurePolicyType, expressions ...string) match.Spec {
	spec := everything()
	spec.FailurePolicy = policy
	for i, e := range expressions {
		spec.MatchConditions = append(spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("c%d", i), Expression: e})
	}
	return spec
}

// podWithTexts makes costly and tooDear cost what they say.
func podWithTexts(t testing.TB) *codec.Review {
	r := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
	r.Object = objectOf(t, fmt.Sprintf(`{"metadata":{"labels":{"a":"1"}},"spec":{"n":1,"long":%q,"longer":%q}}`,
		strings.Repeat("a", 9_000), strings.Repeat("a", 11_000)))
	return r
}

func TestMatchConditions(t *testing.T) {
	const fail, ignore = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	tests := []struct {
		name        string
		policy      admissionregistrationv1.FailurePolicyType
		expressions []string
		want        match.Reason
		condition   string
	}{
		{"all true", fail, []string{isTrue, isTrue}, match.Matched, ""},
		{"one false", fail, []string{isTrue, isFalse, isFalse}, match.MatchCondition, "c1"},
		{"an error, Fail", fail, []string{isTrue, fails}, match.ConditionRefusal, "c1"},
		{"an error, Ignore", ignore, []string{fails, isTrue}, match.ConditionError, "c0"},
		{"false after an error, Fail", fail, []string{fails, isFalse}, match.MatchCondition, "c1"},
		{"false before an error, Ignore", ignore, []string{isFalse, fails}, match.MatchCondition, "c0"},
		{"too dear, Fail", fail, []string{tooDear}, match.ConditionRefusal, "c0"},
		{"too dear, but another is false", fail, []string{tooDear, isFalse}, match.MatchCondition, "c1"},
		{"costly, but within the budget", fail, []string{costly, costly, costly}, match.Matched, ""},
		{"costly, four times", fail, []string{costly, costly, costly, costly}, match.ConditionRefusal, "c3"},
		{"out of budget, Fail", fail, []string{tooDear, tooDear, tooDear}, match.ConditionRefusal, "c2"},
		{"out of budget, Ignore", ignore, []string{tooDear, tooDear, tooDear}, match.ConditionError, "c2"},
		{"out of budget, though one was false", fail, []string{isFalse, tooDear, tooDear, tooDear}, match.ConditionRefusal, "c3"},
		{"the cluster, which kube-apiserver does not have", fail, []string{ofOthers}, match.MatchCondition, "c0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := expect(t, compile(t, withConditions(tt.policy, tt.expressions...)), subjectOf(podWithTexts(t)), tt.want)
			if d.Condition != tt.condition {
				t.Errorf("got condition %q, want %q", d.Condition, tt.condition)
			}
			undecided := tt.want == match.ConditionError || tt.want == match.ConditionRefusal
			if (d.Err != nil) != undecided || (undecided && !strings.Contains(d.Err.Error(), tt.condition)) {
				t.Errorf("got error %v", d.Err)
			}
		})
	}
}

func TestMatchConditionsSeeTheObjectAsMutated(t *testing.T) {
	m := compile(t, withConditions(admissionregistrationv1.Fail, `object.metadata.labels.a == '2'`))
	s, mutated := subjectOf(podWithTexts(t)), objectOf(t, `{"metadata":{"labels":{"a":"2"}}}`)
	expect(t, m, s, match.MatchCondition)
	s.View = s.Mutated(&mutated)
	expect(t, m, s, match.Matched)
}

// A condition that looks into the objects, whichever it is, takes its turn; others do not.
func TestConditionsTakeATurn(t *testing.T) {
	const reads, not = `has(object.spec)`, `request.operation == 'CREATE'`
	for _, tt := range []struct {
		conditions []string
		turns      int
	}{{nil, 0}, {[]string{not, not}, 0}, {[]string{reads, not}, 1}, {[]string{not, reads}, 1}, {[]string{reads, reads}, 1}} {
		account := &turns{}
		compile(t, withConditions(admissionregistrationv1.Fail, tt.conditions...)).Match(account.subject(t))
		if account.taken != tt.turns || account.done != tt.turns {
			t.Errorf("%q: %d turns taken, %d given back, want %d", tt.conditions, account.taken, account.done, tt.turns)
		}
	}
}

// A turn is for the objects as they are now, however small the one that was received.
func TestTurnsGoByTheObjectsAsMutated(t *testing.T) {
	account := &turns{}
	s, large := account.subject(t), objectOf(t, `{"metadata":{"labels":{"a":"`+strings.Repeat("x", 1<<20)+`"}}}`)
	s.Review.OldObject = objectOf(t, `{"metadata":{}}`)
	m := compile(t, withConditions(admissionregistrationv1.Fail, `has(object.spec)`))
	for _, object := range []*codec.Object{s.Object, &large} {
		s.View = s.Mutated(object)
		m.Match(s)
		if want := len(object.Raw) + len(s.Review.OldObject.Raw); account.size != want {
			t.Errorf("a turn for %d bytes, want %d", account.size, want)
		}
	}
}

// With failurePolicy Retry of a binding a condition that fails refuses, and the
// Matcher that it is made from is what it was.
func TestFailingClosed(t *testing.T) {
	open := compile(t, withConditions(admissionregistrationv1.Ignore, fails))
	closed := open.FailingClosed()
	expect(t, closed, subjectOf(podWithTexts(t)), match.ConditionRefusal)
	expect(t, open, subjectOf(podWithTexts(t)), match.ConditionError)
}

func TestE8CompileErrors(t *testing.T) {
	spec := withConditions(admissionregistrationv1.Fail, isTrue, `object.`, isTrue, `authorizer.path('/').check('get')`)
	spec.ObjectSelector = labelSelector("Near", "a", "b")
	_, err := match.Compile(spec, celenv.NewCompiler())
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %v", err)
	}
	var got []string
	var collect func(errs []error)
	collect = func(errs []error) {
		for _, err := range errs {
			var one *match.CompileError
			if many, ok := err.(interface{ Unwrap() []error }); ok {
				collect(many.Unwrap())
			} else if errors.As(err, &one) {
				got = append(got, one.Field+"="+one.Value)
			}
		}
	}
	collect(joined.Unwrap())
	want := "objectSelector= matchConditions[1].expression=object. matchConditions[3].expression=authorizer.path('/').check('get')"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}

// TestMatchConditionsAgainstAPIServer holds conditions against kube-apiserver's
// own matcher: which of them decides, and what an error comes to.
func TestMatchConditionsAgainstAPIServer(t *testing.T) {
	pool := []string{isTrue, isTrue, isFalse, fails, costly, tooDear,
		`object.spec.n == 1 && type(object.spec.n) == int`, `oldObject == null`, `has(object.spec.n)`,
		`request.namespace == 'shop' && request.operation == 'CREATE' && !request.dryRun`,
		`request.resource.resource == request.requestResource.resource`,
		`request.userInfo.username == 'ada' && request.userInfo.groups.exists(g, g == 'dev')`,
		`request.options.nope == 1`, `namespaceObject.metadata.name == 'shop'`, `object.metadata.labels['a'] == '1'`}
	cel, oracles := celenv.NewCompiler(), plugin.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	r := podWithTexts(t)
	r.Kind = codec.GroupVersionKind{Version: []byte("v1"), Kind: []byte("Pod")}
	r.RequestKind = r.Kind
	r.User = codec.UserInfo{Username: []byte("ada"), Groups: [][]byte{[]byte("dev")}}
	attributes := versionedAttributesOf(t, r)
	seen := map[match.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]admissionregistrationv1.FailurePolicyType{
			admissionregistrationv1.Fail, admissionregistrationv1.Ignore}).Draw(t, "policy")
		spec := withConditions(policy, rapid.SliceOfN(rapid.SampledFrom(pool), 1, 5).Draw(t, "expressions")...)
		m, err := match.Compile(spec, cel)
		if err != nil {
			t.Fatal(err)
		}
		d, want := m.Match(subjectOf(r)), oracleOf(oracles, spec).Match(t.Context(), attributes, nil, nil)
		seen[d.Reason]++
		if got := d.Reason == match.ConditionRefusal; got != (want.Error != nil) {
			t.Fatalf("got %v (%v), the API server has the error %v", d.Reason, d.Err, want.Error)
		}
		if got := d.Reason == match.Matched; got != want.Matches {
			t.Fatalf("got %v, the API server says %v", d.Reason, want.Matches)
		}
		if d.Reason == match.MatchCondition && d.Condition != want.FailedConditionName {
			t.Fatalf("got condition %s, the API server says %s", d.Condition, want.FailedConditionName)
		}
	})
	if len(seen) != 4 {
		t.Errorf("the draws were one-sided: %v", seen)
	}
}

func oracleOf(c plugin.ConditionCompiler, spec match.Spec) matchconditions.Matcher {
	var accessors []plugin.ExpressionAccessor
	for i := range spec.MatchConditions {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	compiled := c.CompileCondition(accessors, plugin.OptionalVariableDeclarations{}, environment.StoredExpressions)
	return matchconditions.NewMatcher(compiled, &spec.FailurePolicy, "webhook", "validating", "w")
}

func versionedAttributesOf(t *testing.T, r *codec.Review) *admission.VersionedAttributes {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(r.Object.Raw, &object.Object); err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Group: string(r.Kind.Group), Version: string(r.Kind.Version), Kind: string(r.Kind.Kind)}
	gvr := schema.GroupVersionResource{Group: string(r.Resource.Group), Version: string(r.Resource.Version), Resource: string(r.Resource.Resource)}
	who := &user.DefaultInfo{Name: string(r.User.Username), Groups: []string{string(r.User.Groups[0])}}
	attributes := admission.NewAttributesRecord(object, nil, kind, string(r.Namespace), string(r.Name), gvr, "", admission.Create, nil, false, who)
	return &admission.VersionedAttributes{
		Attributes:      attributes,
		VersionedObject: admission.NewLazyObject(object),
		VersionedKind:   kind,
	}
}

// Conditions are bounded by cost each, and by the caller's deadline together: an
// answer must not be late because many webhooks have costly conditions.
func TestMatchConditionsEndAtTheDeadline(t *testing.T) {
	const loop = `object.spec.list.all(x, object.spec.list.all(y, x == y || x != y))`
	r := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
	r.Object = objectOf(t, `{"metadata":{},"spec":{"list":[`+strings.Repeat("1,", 300)+`1]}}`)
	for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
		m := compile(t, withConditions(policy, loop))
		s := subjectOf(r)
		if d := m.Match(s); d.Reason != match.Matched {
			t.Errorf("without a deadline: %v, %v", d.Reason, d.Err)
		}
		s = subjectOf(r) // what a condition came to would be remembered
		s.Deadline = time.Now().Add(-time.Second)
		if d := m.Match(s); d.Reason != match.NoTimeLeft || !errors.Is(d.Err, celenv.ErrInterrupted) {
			t.Errorf("%s, after the deadline: %v, %v", policy, d.Reason, d.Err)
		}
	}
}

// Conditions that read an object wait for their turn; others do not. Without one the
// match cannot be decided in time, whatever the failure policy.
func TestConditionsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		expression string
		busy       bool
		turns      int
		want       match.Reason
	}{
		{isTrue, true, 0, match.Matched},
		{`object.spec.n == 2`, false, 1, match.MatchCondition},
		{`object.spec.n == 2`, true, 1, match.NoTimeLeft},
		{`oldObject == null`, true, 1, match.NoTimeLeft},
	} {
		m, err := match.Compile(withConditions(admissionregistrationv1.Ignore, c.expression), celenv.NewCompiler())
		if err != nil {
			t.Fatal(err)
		}
		account := &turns{busy: c.busy}
		s := account.subject(t)
		if got := m.Match(s); got.Reason != c.want || account.taken != c.turns || !c.busy && account.done != account.taken {
			t.Errorf("%s: %v, asked %d, done %d", c.expression, got, account.taken, account.done)
		}
		s.Variables().Forget() // and what is asked next is converted again
		if s.Account = nil; m.Match(s).Reason == match.NoTimeLeft {
			t.Errorf("%s: is not evaluated again", c.expression)
		}
	}
}

// turns is an Account that counts the turns.
type turns struct {
	hook.Account
	busy        bool // there are none
	taken, done int
	size        int // of the last
}

// subject is a Subject of this account.
func (a *turns) subject(t *testing.T) *match.Subject {
	source := sourceOf(podWithTexts(t))
	source.Account = a
	return &match.Subject{View: hook.NewView(source)}
}

func (a *turns) Turn(_ string, size int, _ time.Time) (done func(), err error) {
	a.taken++
	a.size = size
	if a.busy {
		return nil, errors.New("busy")
	}
	return func() { a.done++ }, nil
}
