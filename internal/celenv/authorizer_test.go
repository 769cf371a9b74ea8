// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// answering evaluates, and has f answer what is asked meanwhile.
func answering(t *testing.T, v *Variables, f func(*authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error), evaluate func() error) (times int, err error) {
	t.Helper()
	for ; times < 20; times++ {
		wanted, ok := errors.AsType[*Unanswered](evaluateAgain(&err, evaluate))
		if !ok {
			return times, err
		}
		status, failed := f(&wanted.Access)
		v.Answer(wanted, status, failed)
	}
	t.Fatal("it never ends")
	return 0, nil
}

func evaluateAgain(into *error, evaluate func() error) error {
	*into = evaluate()
	return *into
}

// J1 What expressions ask, and what they see of the answer.
func TestAuthorizer(t *testing.T) {
	c, failed := NewCompiler(), errors.New("the API is away")
	asked := []authorizationv1.SubjectAccessReviewSpec{}
	answers := func(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		asked = append(asked, *access)
		switch r := access.ResourceAttributes; {
		case r == nil:
			return authorizationv1.SubjectAccessReviewStatus{Allowed: access.NonResourceAttributes.Verb == "get", Reason: "a"}, nil
		case r.Verb == "break":
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "forged"}, failed
		case r.Verb == "doubt":
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "no such role"}, nil
		case r.Verb == "deny":
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil
		}
		return authorizationv1.SubjectAccessReviewStatus{Allowed: access.User == "ada"}, nil
	}
	ada := authorizationv1.SubjectAccessReviewSpec{User: "ada", UID: "7", Groups: []string{"dev", "ops"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}}}
	of := func(spec authorizationv1.SubjectAccessReviewSpec, r authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewSpec {
		r.Version = "*"
		spec.ResourceAttributes = &r
		return spec
	}
	for _, row := range []struct {
		expression string
		want       bool
		asked      []authorizationv1.SubjectAccessReviewSpec
	}{
		{`authorizer.path('/healthz').check('get').allowed() && authorizer.path('/healthz').check('get').reason() == 'a'`, true,
			[]authorizationv1.SubjectAccessReviewSpec{{User: ada.User, UID: ada.UID, Groups: ada.Groups, Extra: ada.Extra, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"}}}},
		{`authorizer.requestResource.check('get').allowed()`, true,
			[]authorizationv1.SubjectAccessReviewSpec{of(ada, authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web"})}},
		{`authorizer.group('g').resource('r').subresource('s').namespace('n').name('m').check('v').allowed()`, true,
			[]authorizationv1.SubjectAccessReviewSpec{of(ada, authorizationv1.ResourceAttributes{Verb: "v", Group: "g", Resource: "r", Subresource: "s", Namespace: "n", Name: "m"})}},
		{`authorizer.serviceAccount('shop', 'robot').group('').resource('pods').check('get').allowed()`, false,
			[]authorizationv1.SubjectAccessReviewSpec{of(authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:shop:robot", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop"},
			}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"})}},
		{`authorizer.group('').resource('pods').check('break').errored() && !authorizer.group('').resource('pods').check('break').allowed()`, true,
			[]authorizationv1.SubjectAccessReviewSpec{of(ada, authorizationv1.ResourceAttributes{Verb: "break", Resource: "pods"})}},
		{`authorizer.group('').resource('pods').check('break').error() == 'the API is away' && authorizer.group('').resource('pods').check('break').reason() == ''`, true,
			[]authorizationv1.SubjectAccessReviewSpec{of(ada, authorizationv1.ResourceAttributes{Verb: "break", Resource: "pods"})}},
		{`authorizer.group('').resource('pods').check('doubt').errored() && authorizer.group('').resource('pods').check('doubt').allowed()`, true,
			[]authorizationv1.SubjectAccessReviewSpec{of(ada, authorizationv1.ResourceAttributes{Verb: "doubt", Resource: "pods"})}},
		{`authorizer.group('').resource('pods').check('deny').allowed()`, false,
			[]authorizationv1.SubjectAccessReviewSpec{of(ada, authorizationv1.ResourceAttributes{Verb: "deny", Resource: "pods"})}},
		{`request.name == 'web' || authorizer.path('/').check('get').allowed()`, true, []authorizationv1.SubjectAccessReviewSpec{}},
		{`['get', 'post'].all(v, authorizer.path('/').check(v).allowed())`, false, []authorizationv1.SubjectAccessReviewSpec{
			{User: ada.User, UID: ada.UID, Groups: ada.Groups, Extra: ada.Extra, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}},
			{User: ada.User, UID: ada.UID, Groups: ada.Groups, Extra: ada.Extra, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "post"}},
		}},
	} {
		t.Run("J1 "+row.expression, func(t *testing.T) {
			condition, err := c.Compile(row.expression)
			if err != nil || !condition.Authorizes() || condition.predicate != nil {
				t.Fatalf("%+v, %v", condition, err)
			}
			asked = asked[:0]
			v := variablesOf(decode(t, update))
			var holds bool
			var left int64
			evaluates := func() (err error) {
				holds, left, err = condition.Evaluate(v, Budget, time.Now().Add(time.Hour))
				return err
			}
			if _, err := answering(t, v, answers, evaluates); err != nil || holds != row.want || left >= Budget {
				t.Errorf("%v with %d left, %v", holds, left, err)
			}
			if diff := cmp.Diff(row.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			next := new(Variables) // of a later generation: what was answered is not asked again
			next.Inherit(v)
			if again, _, err := condition.Evaluate(next, Budget, time.Time{}); err != nil || again != row.want {
				t.Errorf("later: %v, %v", again, err)
			}
		})
	}
}

// J1 What is wanted says so in words, and quotes names only.
func TestUnansweredSaysWhat(t *testing.T) {
	c := NewCompiler()
	for expression, want := range map[string]string{
		`authorizer.requestResource.check('get').allowed()`: `whether "ada" may get deployments.apps/scale "web" in namespace "shop"`,
		`authorizer.path('/x').check('post').allowed()`:     `whether "ada" may post /x`,
	} {
		_, err := evaluate(t, c, variablesOf(decode(t, update)), expression)
		if _, ok := errors.AsType[*Unanswered](err); !ok || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

// J1 A variable of a policy may ask, but no message and no audit annotation sees the
// authorizer, as in kube-apiserver: there the variable has no value.
func TestAuthorizerOfPolicies(t *testing.T) {
	c := NewCompiler()
	s := c.NewScope(Declarations{Variables: true})
	if err := s.Declare("may", `authorizer.path('/').check('get').allowed()`); err != nil {
		t.Fatal(err)
	}
	if err := s.Declare("mayNot", `!variables.may`); err != nil {
		t.Fatal(err)
	}
	if err := s.Declare("lazy", `true || authorizer.path('/').check('get').allowed()`); err != nil || !s.Authorizes() {
		t.Fatal(err)
	}
	if _, err := s.Compile(`authorizer.path('/').check('get').reason()`, Text); err == nil || !strings.Contains(err.Error(), "undeclared reference to 'authorizer'") {
		t.Errorf("a message: %v", err)
	}
	compile := func(text string, of Result) *Expression {
		x, err := s.Compile(text, of)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	may, lazy := compile(`variables.may && !variables.mayNot`, Bool), compile(`variables.lazy`, Bool)
	message := compile(`'may not: ' + string(variables.mayNot)`, Text)
	lazily := compile(`'lazy: ' + string(variables.lazy)`, Text)
	audit := compile(`string(variables.mayNot) + authorizer.path('/').check('get').reason()`, TextOrNull)
	if may.Authorizes() || audit.Authorizes() {
		t.Error("which of them ask is not known")
	}
	v, budget := variablesOf(decode(t, update)), PolicyBudget
	made := func() (err error) {
		v.Once("policy", s, Given{}, time.Time{}, func(e *Evaluation) (any, bool) {
			e.Pass(budget)
			for _, x := range []*Expression{may, lazy} {
				value, failed := e.Evaluate(x)
				if err = failed; err != nil {
					return nil, false
				}
				if !value.True() {
					t.Errorf("%s is not true", x.text)
				}
			}
			e.PassWithoutAuthorizer(e.Left())
			if value, err := e.Evaluate(message); err == nil || !strings.Contains(err.Error(), "no such attribute") {
				t.Errorf("a message has %v, %v", value, err)
			}
			if value, err := e.Evaluate(lazily); err != nil {
				t.Errorf("a message that does not ask has %v, %v", value, err)
			}
			e.PassWithoutAuthorizer(budget)
			if value, err := e.Evaluate(audit); err == nil || !strings.Contains(err.Error(), "no such attribute") {
				t.Errorf("an annotation has %v, %v", value, err)
			}
			e.Pass(budget)
			if value, err := e.Evaluate(may); err != nil || !value.True() {
				t.Errorf("and then %v, %v", value, err)
			}
			return nil, true
		})
		return err
	}
	times, err := answering(t, v, func(*authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "fine"}, nil
	}, made)
	if err != nil || times != 1 {
		t.Errorf("asked %d times, %v", times, err)
	}
}

// J1 Selectors are sent as kube-apiserver sends them to an authorizer that is a webhook:
// what cannot be said is left out.
func TestSelectorsOfAccess(t *testing.T) {
	for _, row := range []struct {
		fields, labels string
		want           authorizationv1.ResourceAttributes
	}{
		{"a=b,c!=d", "e=f,g!=h,i in (j,k),l notin (m),n,!o", authorizationv1.ResourceAttributes{
			FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "c", Operator: "NotIn", Values: []string{"d"}},
			}},
			LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				{Key: "e", Operator: "In", Values: []string{"f"}}, {Key: "g", Operator: "NotIn", Values: []string{"h"}}, {Key: "i", Operator: "In", Values: []string{"j", "k"}},
				{Key: "l", Operator: "NotIn", Values: []string{"m"}}, {Key: "n", Operator: "Exists"}, {Key: "o", Operator: "DoesNotExist"},
			}},
		}},
		{"", "a > 1", authorizationv1.ResourceAttributes{}},
		{"a", "=", authorizationv1.ResourceAttributes{}},
	} {
		v := variablesOf(decode(t, update))
		_, err := evaluate(t, NewCompiler(), v, `authorizer.group('').resource('pods').fieldSelector('`+row.fields+`').labelSelector('`+row.labels+`').check('list').allowed()`)
		wanted, ok := errors.AsType[*Unanswered](err)
		if !ok {
			t.Fatal(err)
		}
		row.want.Verb, row.want.Version, row.want.Resource = "list", "*", "pods"
		if diff := cmp.Diff(row.want, *wanted.Access.ResourceAttributes); diff != "" {
			t.Error(diff)
		}
	}
	plain := accessOf(authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "a"}, Path: "/", Verb: "get"})
	if diff := cmp.Diff(authorizationv1.SubjectAccessReviewSpec{User: "a", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}}, plain); diff != "" {
		t.Error(diff)
	}
}

// J1 A review about which nobody asks pays nothing.
func TestAuthorizerAlloc(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := NewCompiler()
	condition, err := c.Compile(`request.name == 'web' && request.operation == 'UPDATE'`)
	if err != nil {
		t.Fatal(err)
	}
	v := variablesOf(decode(t, update))
	if n := testing.AllocsPerRun(100, func() {
		if holds, _, err := condition.Evaluate(v, Budget, time.Time{}); !holds || err != nil {
			t.Error(err)
		}
	}); n != 0 || v.access != nil {
		t.Errorf("%v allocations", n)
	}
}
