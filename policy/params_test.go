// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/policy"
)

// caller is a cluster of which some resources are known.
type caller struct {
	objects map[schema.GroupVersionResource]hook.Objects
	labels  map[string]string // of namespace shop
	kinds   hook.Kinds
}

func (c *caller) StoredLabels(namespace string, _ time.Time) (map[string]string, error) {
	if namespace != "shop" || c.labels == nil {
		return nil, match.ErrNoNamespace
	}
	return c.labels, nil
}
func (c *caller) Version() (major, minor int) { return 1, 37 }
func (c *caller) Objects(resource schema.GroupVersionResource) hook.Objects {
	if o, ok := c.objects[resource]; ok {
		return o
	}
	return nil
}
func (c *caller) Kinds() hook.Kinds { return c.kinds }

func (c *caller) Authorize(*authorizationv1.SubjectAccessReviewSpec, time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	return authorizationv1.SubjectAccessReviewStatus{}, errors.New("none")
}

// unasked is where nobody is contacted.
type unasked struct{}

func (unasked) Get(string, string, time.Time) (*hook.Stored, error) { return nil, hook.ErrNotAsked }
func (unasked) List(string, time.Time) ([]*hook.Stored, error)      { return nil, hook.ErrNotAsked }

// unsynced knows nothing.
type unsynced struct{}

func (unsynced) Get(string, string, time.Time) (*hook.Stored, error) {
	return nil, errors.New("the watch is behind")
}
func (unsynced) List(string, time.Time) ([]*hook.Stored, error) {
	return nil, errors.New("the watch is behind")
}

// limits returns an object of a namespace: its data has max, its labels for.
func limits(namespace, name string, max int, labels ...string) *hook.Stored {
	s := &hook.Stored{Namespace: namespace, Name: name, JSON: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"max":"%d"}}`, name, max)}
	for _, label := range labels {
		s.Labels = map[string]string{"for": label}
	}
	return s
}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	ofMaps     = policy.ParamResource{Kind: admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}, Resource: configMaps, Namespaced: true}
	ofCluster  = policy.ParamResource{Kind: ofMaps.Kind, Resource: configMaps}
)

func refTo(name, namespace string, action admissionregistrationv1.ParameterNotFoundActionType, labels ...string) *admissionregistrationv1.ParamRef {
	ref := &admissionregistrationv1.ParamRef{Name: name, Namespace: namespace, ParameterNotFoundAction: &action}
	for _, label := range labels {
		ref.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"for": label}}
	}
	return ref
}

// asking returns the View of the review from a cluster, in a namespace.
func asking(t testing.TB, c *caller, namespace string) *hook.View {
	t.Helper()
	return viewOfText(t, c, strings.ReplaceAll(review, `"namespace":"shop"`, fmt.Sprintf(`"namespace":%q`, namespace)))
}

func viewOfText(t testing.TB, c *caller, text string) *hook.View {
	t.Helper()
	body := codec.NewBody([]byte(text), nil)
	defer body.Release()
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	source := hook.Source{Review: r, Cluster: "east"}
	if c != nil {
		source.Caller = c
	}
	v := hook.NewView(source)
	t.Cleanup(v.Release)
	return v
}

// H11 Which params a paramRef selects, and what is told where there are none, or where it
// is not known whether there are.
func TestParams(t *testing.T) {
	const missing = "no params found for policy binding with `Deny` parameterNotFoundAction"
	stored := []*hook.Stored{limits("shop", "small", 1, "pods"), limits("shop", "big", 9, "pods"), limits("shop", "other", 5), limits("bank", "small", 2, "pods"), limits("shops", "small", 3, "pods")}
	unscoped := []*hook.Stored{limits("", "small", 1, "pods"), limits("", "big", 9)}
	own := map[string][]*hook.Stored{"east": {limits("shop", "small", 7, "pods"), limits("shop", "mine", 8)}, "west": {limits("shop", "theirs", 8)}}
	for _, row := range []struct {
		name      string
		of        policy.ParamResource
		ref       *admissionregistrationv1.ParamRef
		objects   hook.Objects // of the cluster
		stored    []*hook.Stored
		own       map[string][]*hook.Stored
		namespace string
		want      []string
		fails     string
	}{
		{name: "by name in the request's namespace", of: ofMaps, ref: refTo("small", "", "Deny"), stored: stored, namespace: "shop", want: []string{"shop/small 1"}},
		{name: "by name in another", of: ofMaps, ref: refTo("small", "bank", "Deny"), stored: stored, namespace: "shop", want: []string{"bank/small 2"}},
		{name: "in another, of a cluster-scoped request", of: ofMaps, ref: refTo("small", "bank", "Deny"), stored: stored, want: []string{"bank/small 2"}},
		{name: "by selector", of: ofMaps, ref: refTo("", "", "Deny", "pods"), stored: stored, namespace: "shop", want: []string{"shop/big 9", "shop/small 1"}},
		{name: "by selector of all", of: ofMaps, ref: &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: refTo("", "", "Deny").ParameterNotFoundAction}, stored: stored, namespace: "shop", want: []string{"shop/big 9", "shop/other 5", "shop/small 1"}},
		{name: "no name, Deny", of: ofMaps, ref: refTo("none", "", "Deny"), stored: stored, namespace: "shop", fails: missing},
		{name: "no name, Allow", of: ofMaps, ref: refTo("none", "", "Allow"), stored: stored, namespace: "shop"},
		{name: "none selected, Deny", of: ofMaps, ref: refTo("", "", "Deny", "jobs"), stored: stored, namespace: "shop", fails: missing},
		{name: "none selected, Allow", of: ofMaps, ref: refTo("", "", "Allow", "jobs"), stored: stored, namespace: "shop"},
		{name: "namespaced, a cluster-scoped request", of: ofMaps, ref: refTo("small", "", "Allow"), stored: stored, fails: "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"},
		{name: "of the cluster's scope, by name", of: ofCluster, ref: refTo("small", "", "Deny"), stored: unscoped, namespace: "shop", want: []string{"small 1"}},
		{name: "of the cluster's scope, by selector", of: ofCluster, ref: refTo("", "", "Deny", "pods"), stored: unscoped, want: []string{"small 1"}},
		{name: "its own in place of one for all", of: ofMaps, ref: refTo("", "", "Deny", "pods"), stored: stored, own: own, namespace: "shop", want: []string{"shop/big 9", "shop/small 7"}},
		{name: "its own beside those for all", of: ofMaps, ref: refTo("mine", "", "Deny"), stored: stored, own: own, namespace: "shop", want: []string{"shop/mine 8"}},
		{name: "nobody else's", of: ofMaps, ref: refTo("theirs", "", "Deny"), stored: stored, own: own, namespace: "shop", fails: missing},
		{name: "the cluster's", of: ofMaps, ref: refTo("", "", "Deny", "pods"), objects: policy.ParamList{limits("shop", "a", 4, "pods"), limits("shop", "b", 4)}, namespace: "shop", want: []string{"shop/a 4"}},
		{name: "the cluster's, not synced, is not none", of: ofMaps, ref: refTo("small", "", "Allow"), objects: unsynced{}, namespace: "shop", fails: "paramKind kind `&ParamKind{APIVersion:v1,Kind:ConfigMap,}` not yet synced to use for admission: the watch is behind"},
		{name: "a list that is not synced", of: ofMaps, ref: refTo("", "", "Allow", "pods"), objects: unsynced{}, namespace: "shop", fails: "paramKind kind `&ParamKind{APIVersion:v1,Kind:ConfigMap,}` not yet synced to use for admission: the watch is behind"},
		{name: "nobody has the kind", of: ofMaps, ref: refTo("small", "", "Allow"), namespace: "shop", fails: "paramKind kind `&ParamKind{APIVersion:v1,Kind:ConfigMap,}` not known"},
		{name: "what is no object", of: ofMaps, ref: refTo("a", "", "Allow"), objects: policy.ParamList{{Namespace: "shop", Name: "a", JSON: []byte("[]")}}, namespace: "shop", want: []string{"shop/a expression 'params == null' resulted in error: failed to prepare params for evaluation: it is no object, but []interface {}"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var registry *policy.RegistryParams
			if row.stored != nil {
				registry = policy.NewRegistryParams(row.stored, row.own)
			}
			p, err := policy.NewParams(row.of, row.ref, registry)
			if err != nil {
				t.Fatal(err)
			}
			c := &caller{}
			if row.objects != nil {
				c.objects = map[schema.GroupVersionResource]hook.Objects{configMaps: row.objects}
			}
			v := asking(t, c, row.namespace)
			found, err := p.Find(&hook.Question{View: v})
			var got []string
			said := ask(v, bindingOf(t, "{paramKind: {}, validations: [{expression: params == null, messageExpression: string(params.data.max)}]}", "", p, "Warn"), time.Time{})
			for i, param := range found {
				_, max, _ := strings.Cut(said.resp.Warnings[i], "'b': ")
				got = append(got, fmt.Sprint(param, " ", max))
			}
			if text := fmt.Sprint(err); err == nil && row.fails != "" || err != nil && text != row.fails || !slices.Equal(got, row.want) {
				t.Errorf("%v, %v", got, err)
			}
			if resource, asks := p.Needed(); asks != (row.stored == nil) || asks && resource != configMaps {
				t.Errorf("it needs %v, %t", resource, asks)
			}
		})
	}
	if _, err := policy.NewParams(ofCluster, refTo("a", "shop", "Deny"), nil); err == nil || err.Error() != "paramRef.namespace must not be provided for a cluster-scoped `paramKind`" {
		t.Error(err)
	}
}

// atMost is a policy with params, whose validations hold for pods of a number of containers.
const atMost = `{paramKind: {apiVersion: v1, kind: ConfigMap}, FAILURE
	matchConditions: [{name: c, expression: "int(params.data.max) > 1"}],
	variables: [{name: max, expression: "int(params.data.max)"}],
	validations: [{expression: "variables.max > 6", messageExpression: "'at most ' + string(params.data.max)"}, {expression: "variables.max > 0"}],
	auditAnnotations: [{key: max, valueExpression: "string(params.data.max)"}]}`

func bindingOf(t testing.TB, text, failure string, p *policy.Params, actions ...admissionregistrationv1.ValidationAction) *policy.Binding {
	t.Helper()
	return policy.NewBinding(compile(t, strings.Replace(text, "FAILURE", failure, 1)), "p", "b", actions, p)
}

func paramsOf(t testing.TB, ref *admissionregistrationv1.ParamRef, stored ...*hook.Stored) *policy.Params {
	t.Helper()
	p, err := policy.NewParams(ofMaps, ref, policy.NewRegistryParams(stored, nil))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// H11 A policy is evaluated with each param by itself, conditions, variables and
// annotations too, and all of them must hold. Equal denials are told once.
func TestEachParamMustHold(t *testing.T) {
	p := paramsOf(t, refTo("", "", "Deny", "pods"), limits("shop", "a", 9, "pods"), limits("shop", "b", 5, "pods"), limits("shop", "c", 1, "pods"), limits("shop", "d", 4, "pods"), limits("shop", "e", 5, "pods"))
	annotations := []codec.Annotation{{Key: "max", Value: "9"}, {Key: "max", Value: "5"}, {Key: "max", Value: "4"}, {Key: "max", Value: "5"}}
	got := ask(asking(t, nil, "shop"), bindingOf(t, atMost, "", p, "Deny"), time.Now().Add(time.Hour))
	want := codec.Response{Code: 422, Reason: "Invalid", Message: "at most 5\nat most 4", Annotations: annotations}
	if diff := cmp.Diff(want, got.resp); diff != "" || got.err != nil {
		t.Errorf("%v (-want +got):\n%s", got.err, diff)
	}
	got = ask(asking(t, nil, "shop"), bindingOf(t, atMost, "", p, "Warn"), time.Now().Add(time.Hour))
	if n := len(got.resp.Warnings); n != 3 || !got.resp.Allowed {
		t.Errorf("%+v", got)
	}
	// A failure under Ignore is told once, and does not hide a denial of another param.
	failing := "{paramKind: {}, failurePolicy: Ignore, validations: [{expression: \"params.data.max == '9' ? false : params.data.none == 'a'\", message: denied}]}"
	got = ask(asking(t, nil, "shop"), bindingOf(t, failing, "", p, "Deny"), time.Time{})
	if got.resp.Message != "denied" || got.err != nil {
		t.Errorf("%+v", got)
	}
	got = ask(asking(t, nil, "shop"), bindingOf(t, failing, "", paramsOf(t, refTo("", "", "Deny", "pods"), limits("shop", "b", 5, "pods"), limits("shop", "c", 5, "pods")), "Deny"), time.Time{})
	var call *hook.CallError
	if !errors.As(got.err, &call) || call.Cause != hook.Evaluation || call.Error() != "no such key: none" {
		t.Errorf("%+v: %v", got.resp, got.err)
	}
}

// H11 However many params there are, the answer is bounded.
func TestManyParams(t *testing.T) {
	var many []*hook.Stored
	for i := range 300 {
		many = append(many, limits("shop", fmt.Sprint("p", i), i, "pods"))
	}
	p := paramsOf(t, refTo("", "", "Deny", "pods"), many...)
	long := "{paramKind: {}, validations: [{expression: 'false', messageExpression: string(params.data.max)}], auditAnnotations: [{key: k, valueExpression: \"string(params.data.max) + '" + strings.Repeat("a", 2000) + "'\"}]}"
	got := ask(asking(t, nil, "shop"), bindingOf(t, long, "", p, "Deny", "Audit"), time.Time{})
	failures, bytes := 0, 0
	for _, a := range got.resp.Annotations {
		if a.Key == hook.FailureKey {
			failures++
		} else {
			bytes += len(a.Value)
		}
	}
	if n := strings.Count(got.resp.Message, "\n"); n != 99 || failures != 100 || bytes > 200<<10 || bytes < 190<<10 || got.resp.DroppedAnnotations == 0 {
		t.Errorf("%d lines, %d failures, %d bytes, %d dropped", n, failures, bytes, got.resp.DroppedAnnotations)
	}
	if got = ask(asking(t, nil, "shop"), bindingOf(t, long, "", p, "Warn"), time.Time{}); len(got.resp.Warnings) != 100 {
		t.Errorf("%d warnings", len(got.resp.Warnings))
	}
}

// H11 Annotations of many params may be as long as those of one can be, together.
func TestLongAnnotationsOfManyParams(t *testing.T) {
	var many []*hook.Stored
	for i := range 21 {
		many = append(many, limits("shop", fmt.Sprint("p", i), i, "pods"))
	}
	long := "{paramKind: {}, auditAnnotations: [{key: k, valueExpression: \"string(params.data.max) + '" + strings.Repeat("a", 10<<10) + "'\"}]}"
	got := ask(asking(t, nil, "shop"), bindingOf(t, long, "", paramsOf(t, refTo("", "", "Deny", "pods"), many...), "Deny"), time.Time{})
	if len(got.resp.Annotations) != 20 || got.resp.DroppedAnnotations != 1 || len(got.resp.Annotations[0].Value) != 10<<10 {
		t.Errorf("%d annotations, %d dropped", len(got.resp.Annotations), got.resp.DroppedAnnotations)
	}
}

// H13 A binding with other params is another version of it.
func TestSumOfParams(t *testing.T) {
	list := func(s ...*hook.Stored) []*hook.Stored { return s }
	own := func(s ...*hook.Stored) map[string][]*hook.Stored { return map[string][]*hook.Stored{"east": s} }
	sums := map[string]string{}
	for name, p := range map[string]struct {
		ref      *admissionregistrationv1.ParamRef
		registry *policy.RegistryParams
	}{
		"cluster":      {refTo("a", "", "Deny"), nil},
		"other ref":    {refTo("a", "", "Allow"), nil},
		"none":         {refTo("a", "", "Deny"), policy.NewRegistryParams(nil, nil)},
		"one":          {refTo("a", "", "Deny"), policy.NewRegistryParams(list(limits("shop", "a", 1)), nil)},
		"changed":      {refTo("a", "", "Deny"), policy.NewRegistryParams(list(limits("shop", "a", 2)), nil)},
		"own":          {refTo("a", "", "Deny"), policy.NewRegistryParams(nil, own(limits("shop", "a", 1)))},
		"own, changed": {refTo("a", "", "Deny"), policy.NewRegistryParams(nil, own(limits("shop", "a", 2)))},
	} {
		found, err := policy.NewParams(ofMaps, p.ref, p.registry)
		if err != nil {
			t.Fatal(err)
		}
		b := bindingOf(t, "{paramKind: {}, validations: [{expression: 'true'}]}", "", found, "Deny")
		if another, taken := sums[b.Sum]; taken {
			t.Errorf("%s is what %s is", name, another)
		}
		sums[b.Sum] = name
		if of := " of the registry"; b.Params != "ConfigMap of the cluster" && b.Params != "ConfigMap"+of || strings.HasSuffix(b.Params, of) == (p.registry == nil) {
			t.Errorf("%s has params %s", name, b.Params)
		}
	}
	if b := bindingOf(t, "{paramKind: {}, validations: [{expression: 'true'}]}", "", nil, "Deny"); b.Params != "" || sums[b.Sum] != "" {
		t.Errorf("without params: %+v", b)
	}
	if _, asks := (*policy.Params)(nil).Needed(); asks {
		t.Error("no params are asked for")
	}
}

// H11 A binding without a paramRef is evaluated once, with null.
func TestNullParams(t *testing.T) {
	got := ask(asking(t, nil, "shop"), bindingOf(t, "{paramKind: {}, matchConditions: [{name: a, expression: params == null}], validations: [{expression: params != null, message: 'null'}]}", "", nil, "Deny"), time.Time{})
	if got.resp.Message != "null" {
		t.Errorf("%+v", got)
	}
}

// H11 Params that are not known, or missing where they must not be, deny whatever the
// actions are, before any condition is evaluated; Ignore skips the policy, visibly.
func TestUnconfiguredBinding(t *testing.T) {
	for ref, text := range map[*admissionregistrationv1.ParamRef]string{
		refTo("none", "", "Deny"): "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
		refTo("a", "", "Allow"):   "failed to configure binding: paramKind kind `&ParamKind{APIVersion:v1,Kind:ConfigMap,}` not yet synced to use for admission: the watch is behind",
	} {
		p := paramsOf(t, ref, limits("shop", "a", 1))
		c := &caller{}
		if ref.Name == "a" {
			c.objects = map[schema.GroupVersionResource]hook.Objects{configMaps: unsynced{}}
			p, _ = policy.NewParams(ofMaps, ref, nil)
		}
		got := ask(asking(t, c, "shop"), bindingOf(t, atMost, "", p, "Audit"), time.Now().Add(time.Hour))
		if diff := cmp.Diff(codec.Response{Code: 422, Reason: "Invalid", Message: text}, got.resp); diff != "" || got.err != nil {
			t.Errorf("%v (-want +got):\n%s", got.err, diff)
		}
		got = ask(asking(t, c, "shop"), bindingOf(t, atMost, "failurePolicy: Ignore,", p, "Deny"), time.Now().Add(time.Hour))
		if call, ok := errors.AsType[*hook.CallError](got.err); !ok || call.Cause != hook.Evaluation || call.Error() != text {
			t.Errorf("%+v", got)
		}
	}
	got := ask(asking(t, nil, "shop"), bindingOf(t, atMost, "", paramsOf(t, refTo("none", "", "Allow"), limits("shop", "a", 1)), "Deny"), time.Time{})
	if diff := cmp.Diff(codec.Response{Allowed: true}, got.resp); diff != "" || got.err != nil {
		t.Errorf("%v (-want +got):\n%s", got.err, diff)
	}
}

// H13 What is kept of a review is of the policy and the param; a version of a param is
// decoded once, and the next version counts for the next review.
func TestParamsAreKeptByVersion(t *testing.T) {
	text := "{paramKind: {}, validations: [{expression: 'false', messageExpression: string(params.data.max)}]}"
	compiled := compile(t, text)
	list := policy.ParamList{limits("shop", "a", 1)}
	p, err := policy.NewParams(ofMaps, refTo("a", "", "Deny"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{objects: map[schema.GroupVersionResource]hook.Objects{configMaps: list}}
	b := policy.NewBinding(compiled, "p", "b", []admissionregistrationv1.ValidationAction{"Deny"}, p)
	v := asking(t, c, "shop")
	first, err := p.Find(&hook.Question{View: v})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := p.Find(&hook.Question{View: asking(t, c, "shop")}); again[0] != first[0] {
		t.Error("one version is decoded twice")
	}
	if got := ask(v, b, time.Time{}); got.resp.Message != "1" {
		t.Errorf("%+v", got)
	}
	list[0] = limits("shop", "a", 2)
	for _, of := range []*hook.View{v, asking(t, c, "shop")} { // also within one review, as in kube-apiserver
		if got := ask(of, b, time.Time{}); got.resp.Message != "2" {
			t.Errorf("%+v", got)
		}
	}
}

// What a policy came to with each of its params, and what is not known without the cluster.
func TestExplainParams(t *testing.T) {
	p := paramsOf(t, refTo("", "", "Deny", "pods"), limits("shop", "a", 9, "pods"), limits("shop", "b", 5, "pods"))
	x, err := bindingOf(t, "{paramKind: {}, validations: [{expression: \"params.data.max == '9'\"}]}", "", p, "Deny").Explain(asking(t, nil, "shop"))
	want := hook.Explanation{
		Answer: "denies: failed expression: params.data.max == '9'",
		Steps:  []string{"params: ConfigMap of the registry shop/a", "validations[0]: true", "params: ConfigMap of the registry shop/b", "validations[0]: false"},
	}
	if diff := cmp.Diff(want, x); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	missing := paramsOf(t, refTo("none", "", "Deny"), limits("shop", "a", 9, "pods"))
	if x, _ = bindingOf(t, atMost, "", missing, "Deny").Explain(asking(t, nil, "shop")); !strings.HasPrefix(x.Answer, "denies: failed to configure binding: no params found") {
		t.Error(x.Answer)
	}
	ofCluster, _ := policy.NewParams(ofMaps, refTo("a", "", "Deny"), nil)
	asked := &caller{objects: map[schema.GroupVersionResource]hook.Objects{configMaps: unasked{}, policy.Namespaces(): unasked{}}}
	for _, c := range []*caller{{}, asked} {
		for text, params := range map[string]*policy.Params{atMost: ofCluster, "validations: [{expression: namespaceObject == null}]": nil} {
			if x, _ = bindingOf(t, text, "", params, "Deny").Explain(asking(t, c, "shop")); x.Answer != "depends on what the cluster stores, which was not asked" {
				t.Errorf("%s: %s", text, x.Answer)
			}
		}
	}
}
