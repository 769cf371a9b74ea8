// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// policySubject is the dispatcher.
type policySubject struct {
	*dispatcher.Dispatcher
	compiler *compile.Compiler
	api      manifest.Input // with the Cluster alone
	cluster  *chain.Cluster
	refused  []manifest.Problem // one of each
	loaded   int
}

func newPolicySubject(t *testing.T) *policySubject {
	t.Helper()
	d, err := dispatcher.New(dispatcher.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Wait)
	compiler := compile.NewCompiler(compile.Options{
		Authorizer: func(string, manifest.KubeAccess) chain.AuthorizerSource { return authority{} },
	})
	return &policySubject{Dispatcher: d, compiler: compiler, api: clusterWithAPI(t)}
}

// load reports whether the policies are valid.
func (s *policySubject) load(t *testing.T, policies []*validating.Policy, bindings []*validating.PolicyBinding, params ...*unstructured.Unstructured) bool {
	t.Helper()
	objects := &manifest.Objects{Params: inRegistry(params), CustomResources: customResources}
	for _, p := range policies {
		objects.Policies = append(objects.Policies, manifest.Policy{ValidatingAdmissionPolicy: *p, Origin: manifest.Origin{Object: "p/" + p.Name}})
	}
	for _, b := range bindings {
		objects.PolicyBindings = append(objects.PolicyBindings, manifest.PolicyBinding{ValidatingAdmissionPolicyBinding: *b, Origin: manifest.Origin{Object: "b/" + b.Name}})
	}
	if !s.loadObjects(objects) {
		return false
	}
	s.cluster.Stored = stored(params)
	return true
}

// loadObjects does the same for policies that were read.
func (s *policySubject) loadObjects(objects *manifest.Objects) bool {
	in := s.api
	objects.Clusters, in.Objects = in.Objects.Clusters, objects
	compiled, problems, _ := s.compiler.Compile(in, nil, nil)
	if len(problems) > 0 {
		s.refused = append(s.refused, problems[0])
		return false
	}
	s.loaded++
	s.cluster = compiled.Clusters["east"]
	s.cluster.Namespaces, s.cluster.Stored = listedNamespaces{}, stored(nil)
	return true
}

func (s *policySubject) decide(t *testing.T, a *policyAdmission) decided {
	t.Helper()
	response := s.answer(t, a, chain.Validating)
	d := decided{Allowed: response.Allowed, Code: response.Code, Reason: response.Reason, Message: unindented(response.Message), Annotations: map[string]string{}}
	for _, w := range response.Warnings {
		if strings.HasPrefix(w, "Validation failed for ") && !slices.Contains(d.Warnings, w) { // others are our own; the caller tells equal ones once
			d.Warnings = append(d.Warnings, w)
		}
	}
	for _, kv := range response.Annotations {
		if own := strings.HasPrefix(kv.Key, "dispatcher.dev."); !own || kv.Key == "dispatcher.dev.validation-failures" {
			d.Annotations[kv.Key] = kv.Value
		}
	}
	return d
}

// answer is what the dispatcher says about the admission.
func (s *policySubject) answer(t *testing.T, a *policyAdmission, phase chain.Phase) codec.Response {
	t.Helper()
	dryRun := false
	kind, resource := metav1.GroupVersionKind(a.Kind), metav1.GroupVersionResource(a.Resource)
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Kind: kind, Resource: resource, SubResource: a.Subresource, RequestKind: &kind, RequestResource: &resource, RequestSubResource: a.Subresource,
			Name: a.Name, Namespace: a.Namespace, Operation: admissionv1.Operation(a.Operation), DryRun: &dryRun,
			UserInfo: authenticationv1.UserInfo{Username: a.user().GetName(), Groups: a.user().GetGroups()},
		},
	}
	for _, o := range []struct {
		from runtime.Object
		to   *runtime.RawExtension
	}{{a.New, &review.Request.Object}, {a.Old, &review.Request.OldObject}} {
		if o.from != nil {
			o.to.Object = o.from
		}
	}
	text, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	body := codec.NewBody(text, nil)
	defer body.Release()
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	var v dispatcher.Verdict
	s.Dispatch(t.Context(), dispatcher.Request{Review: r, Cluster: s.cluster, Phase: phase, Snapshot: "s", Deadline: time.Now().Add(time.Minute)}, &v)
	return v.Response
}

// unindented is the message with what follows the first line of a denial where it began.
func unindented(message string) string { return strings.ReplaceAll(message, "\n  ", "\n") }
