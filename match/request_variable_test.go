// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"encoding/json"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// asked is one request, in the API server's types.
type asked struct {
	operation   admission.Operation
	sub         string
	kind        string
	sent        schema.GroupVersion // of kind and resource; they are converted to v1
	object, old map[string]any
	options     runtime.Object
	dryRun      bool
	user        user.DefaultInfo
}

func optionsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: "meta.k8s.io/v1"}
}

func requestsAsked() map[string]asked {
	labelled := func(value string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": "it", "creationTimestamp": nil, "labels": map[string]any{"a": value}},
			"spec":     map[string]any{"priority": int64(7), "ratio": 1.5, "list": []any{int64(1), "x"}, "enabled": true},
		}
	}
	ada := user.DefaultInfo{Name: "ada", UID: "7", Groups: []string{"dev", "ops"}, Extra: map[string][]string{"scopes": {"a", "b"}}}
	grace, uid := int64(30), types.UID("u")
	v1 := schema.GroupVersion{Version: "v1"}
	return map[string]asked{
		"converted": {
			operation: admission.Create, kind: "Pod", sent: schema.GroupVersion{Group: "old.example.com", Version: "v1beta1"}, object: labelled("1"), user: ada,
			options: &metav1.CreateOptions{TypeMeta: optionsType("CreateOptions"), FieldManager: "kubectl"},
		},
		"CREATE": {
			operation: admission.Create, kind: "Pod", sent: v1, object: labelled("1"), user: ada,
			options: &metav1.CreateOptions{TypeMeta: optionsType("CreateOptions"), FieldManager: "kubectl", FieldValidation: "Strict"},
		},
		"UPDATE": {
			operation: admission.Update, kind: "Pod", sent: v1, sub: "status", object: labelled("2"), old: labelled("1"), dryRun: true,
			user:    user.DefaultInfo{Name: "system:serviceaccount:shop:web"},
			options: &metav1.UpdateOptions{TypeMeta: optionsType("UpdateOptions"), DryRun: []string{"All"}},
		},
		"DELETE": {
			operation: admission.Delete, kind: "Pod", sent: v1, old: labelled("1"), user: ada,
			options: &metav1.DeleteOptions{
				TypeMeta: optionsType("DeleteOptions"), GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid},
			},
		},
		"CONNECT": {
			operation: admission.Connect, kind: "PodExecOptions", sent: v1, sub: "exec", user: ada,
			object: map[string]any{"apiVersion": "v1", "kind": "PodExecOptions", "command": []any{"sh"}},
		},
	}
}

// TestVariablesAgainstAPIServer asks both about each variable of each request.
func TestVariablesAgainstAPIServer(t *testing.T) {
	expressions := []string{
		`object == null`, `oldObject == null`, `has(object.metadata)`, `has(oldObject.metadata.labels.a)`, `'a' in object.metadata.labels`,
		`object.metadata.labels.a == oldObject.metadata.labels.a`, `object.metadata.creationTimestamp == null`, `object.command == ['sh']`,
		`type(object.spec.priority) == int`, `type(object.spec.ratio) == double`, `object.spec.enabled == true`, `object.spec.list[1] == 'x'`,
		`object.spec.list.exists(x, x == 'y')`, `object.?spec.?absent.orValue('d') == 'd'`, `object.spec.absent == 1`, `has(object.spec.absent)`,
		`request.options == null`, `has(request.options)`, `request.options.fieldManager == 'kubectl'`, `has(request.options.fieldManager)`,
		`request.options.fieldValidation == 'Strict'`, `request.options.kind == 'UpdateOptions'`, `request.options.apiVersion == 'meta.k8s.io/v1'`,
		`request.options.dryRun == ['All']`, `has(request.options.dryRun)`, `type(request.options.gracePeriodSeconds) == int`,
		`request.options.gracePeriodSeconds == 30`, `request.options.preconditions.uid == 'u'`, `request.options.absent == ''`,
		`request.name == 'it'`, `request.namespace == 'shop'`, `request.operation in ['CREATE', 'CONNECT']`,
		`request.dryRun`, `has(request.dryRun)`, `request.subResource == 'exec'`, `has(request.subResource)`, `request.requestSubResource == 'status'`,
		`request.kind.kind == 'Pod'`, `request.kind == request.requestKind`, `has(request.kind.group)`, `request.kind.group == ''`,
		`request.resource.resource == 'pods' && request.resource.version == 'v1'`, `request.requestResource.version == 'v1'`,
		`request.resource == request.requestResource`, `request.resource.group == ''`, `request.kind.version == 'v1'`, `request.requestKind.group == ''`,
		`request.userInfo.username == 'ada'`, `request.userInfo.uid == '7'`, `has(request.userInfo.uid)`, `'ops' in request.userInfo.groups`,
		`has(request.userInfo.groups)`, `request.userInfo.extra['scopes'] == ['a', 'b']`, `has(request.userInfo.extra)`,
		`request.userInfo.username.startsWith('system:serviceaccount:')`, `namespaceObject == null`, `namespaceObject.metadata.name == 'shop'`,
	}
	cel, oracles := celenv.NewCompiler(), plugin.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	for name, a := range requestsAsked() {
		t.Run(name, func(t *testing.T) {
			s, attributes := subjectOf(a.review(t)), a.attributes()
			seen := map[match.Reason]int{}
			for _, expression := range expressions {
				spec := withConditions(admissionregistrationv1.Fail, expression)
				m, err := match.Compile(spec, cel)
				if err != nil {
					t.Fatal(err)
				}
				theirs, want := oracleOf(oracles, spec).Match(t.Context(), attributes, nil, nil), match.MatchCondition
				switch {
				case theirs.Error != nil:
					want = match.ConditionRefusal
				case theirs.Matches:
					want = match.Matched
				}
				if d := m.Match(s); d.Reason != want {
					t.Errorf("%s: got %v (%v), the API server says %v (%v)", expression, d.Reason, d.Err, want, theirs.Error)
				}
				seen[want]++
			}
			if len(seen) != 3 {
				t.Errorf("the expressions are one-sided: %v", seen)
			}
		})
	}
}

func (a *asked) attributes() *admission.VersionedAttributes {
	v := &admission.VersionedAttributes{VersionedKind: schema.GroupVersionKind{Version: "v1", Kind: a.kind}}
	var object, old runtime.Object
	if a.object != nil {
		object = &unstructured.Unstructured{Object: a.object}
		v.VersionedObject = admission.NewLazyObject(object)
	}
	if a.old != nil {
		old = &unstructured.Unstructured{Object: a.old}
		v.VersionedOldObject = admission.NewLazyObject(old)
	}
	v.Attributes = admission.NewAttributesRecord(object, old, a.sent.WithKind(a.kind), "shop", "it", a.sent.WithResource("pods"),
		a.sub, a.operation, a.options, a.dryRun, &a.user)
	return v
}

// review is the request as the API server sends it.
func (a *asked) review(t *testing.T) *codec.Review {
	t.Helper()
	kind, resource := map[string]any{"group": "", "version": "v1", "kind": a.kind}, map[string]any{"group": "", "version": "v1", "resource": "pods"}
	sentKind := map[string]any{"group": a.sent.Group, "version": a.sent.Version, "kind": a.kind}
	sentResource := map[string]any{"group": a.sent.Group, "version": a.sent.Version, "resource": "pods"}
	info := map[string]any{"username": a.user.Name, "uid": a.user.UID, "groups": a.user.Groups, "extra": a.user.Extra}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": "u", "kind": kind, "resource": resource, "subResource": a.sub,
			"requestKind": sentKind, "requestResource": sentResource, "requestSubResource": a.sub,
			"name": "it", "namespace": "shop", "operation": a.operation, "userInfo": info,
			"object": a.object, "oldObject": a.old, "dryRun": a.dryRun, "options": a.options,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := codec.AcquireReview()
	t.Cleanup(func() { codec.ReleaseReview(r) })
	body := codec.NewBody(raw, nil)
	defer body.Release()
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	return r
}
