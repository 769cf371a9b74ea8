// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// play is one admission of the demo and what must come of it.
type play struct {
	cluster string // whose path is called
	caller  string // whose certificate is presented; cluster if empty
	phase   string // mutate or validate
	about   string // the point of it, for the reader
	request admissionv1.AdmissionRequest
	want    expectation
}

// expectation is what must come of a play.
type expectation struct {
	status  int // HTTP; 200 if zero
	denied  bool
	code    int32    // of a denial
	patched bool     // the answer carries a patch
	called  []string // sample webhooks that were asked, sorted
	says    []string // texts that the message or a warning contains
}

// plays returns the admissions in the order in which they are played.
func plays() []play {
	good := pod("shop", "web", "registry.example.com/web:1.4")
	latest := pod("shop", "web", "registry.example.com/web:latest")
	lonely := deployment("shop", "api", nil, 1)
	owned := deployment("shop", "api", map[string]string{"owner": "payments"}, 3)
	small := deployment("shop", "api", map[string]string{"owner": "payments"}, 1)
	optedOut := pod("shop", "web", "registry.example.com/web:1.4")
	optedOut.Labels = map[string]string{"defaults.example.com/skip": "yes"}

	return []play{
		{cluster: "dev", phase: "mutate", about: "a pod gets its default label",
			request: create(good), want: expectation{patched: true, called: []string{"labels"}}},
		{cluster: "dev", phase: "mutate", about: "a pod that opted out by its own label",
			request: create(optedOut), want: expectation{}},
		{cluster: "dev", phase: "validate", about: "a good pod",
			request: create(good), want: expectation{called: []string{"images", "licenses"}}},
		{cluster: "dev", phase: "validate", about: "an image with the tag :latest",
			request: create(latest),
			want: expectation{denied: true, code: 403, called: []string{"images", "licenses"},
				says: []string{`admission webhook "images.policy.example.com" denied the request`, "name a version"}}},
		{cluster: "staging", phase: "validate", about: "the same pod where that policy is in Shadow",
			request: create(latest), want: expectation{called: []string{"images", "licenses"}}},
		{cluster: "dev", phase: "validate", about: "no owner where that policy only warns",
			request: create(lonely),
			want:    expectation{called: []string{"owner"}, says: []string{`would be denied if enforced`, `the label "owner" is missing`}}},
		{cluster: "prod", phase: "validate", about: "no owner and one replica: both denials are shown",
			request: create(lonely),
			want: expectation{denied: true, code: 403, called: []string{"owner", "replicas"},
				says: []string{`the label "owner" is missing`, "at least 2 replicas"}}},
		{cluster: "staging", phase: "validate", about: "one replica: a matchCondition spares staging",
			request: create(small), want: expectation{called: []string{"owner"}}},
		{cluster: "prod", phase: "validate", about: "a deployment as it should be",
			request: create(owned), want: expectation{called: []string{"owner", "replicas"}}},
		{cluster: "prod", phase: "validate", about: "one replica, by somebody with a break-glass group",
			request: by(create(small), "break-glass"), want: expectation{called: []string{"owner"}}},
		{cluster: "prod", phase: "validate", about: "a slow webhook that may be ignored",
			request: create(pod("shop", "slow-start", "registry.example.com/web:1.4")),
			want:    expectation{called: []string{"images", "licenses"}, says: []string{"licenses.scan.example.com", "Timeout"}}},
		{cluster: "prod", phase: "validate", about: "a broken webhook that may be ignored",
			request: create(pod("shop", "flaky-start", "registry.example.com/web:1.4")),
			want:    expectation{called: []string{"images", "licenses"}, says: []string{"licenses.scan.example.com", "HTTPStatus"}}},
		{cluster: "prod", phase: "validate", about: "kube-system is bypassed: a cluster must be able to heal",
			request: create(pod("kube-system", "dns", "registry.example.com/dns:latest")), want: expectation{}},
		{cluster: "prod", phase: "validate", about: "leases are bypassed",
			request: renew("shop", "leader"), want: expectation{}},
		{cluster: "prod", phase: "validate", about: "nobody asked to see deletions",
			request: remove(good), want: expectation{}},
		{cluster: "prod", caller: "dev", phase: "validate", about: "dev's certificate on the path of prod",
			request: create(good), want: expectation{status: 403}},
	}
}

func pod(namespace, name, image string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func deployment(namespace, name string, labels map[string]string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

// object is what the sample objects have in common.
type object interface {
	metav1.Object
	runtime.Object
}

// create asks for a new object.
func create(o object) admissionv1.AdmissionRequest {
	r := about(o)
	r.Operation = admissionv1.Create
	r.Object = runtime.RawExtension{Raw: encode(o)}
	return r
}

// remove asks for an object's deletion.
func remove(o object) admissionv1.AdmissionRequest {
	r := about(o)
	r.Operation = admissionv1.Delete
	r.OldObject = runtime.RawExtension{Raw: encode(o)}
	return r
}

// renew asks for a lease's renewal.
func renew(namespace, name string) admissionv1.AdmissionRequest {
	lease := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	r := about(lease)
	r.Operation = admissionv1.Update
	r.Object = runtime.RawExtension{Raw: encode(lease)}
	r.OldObject = r.Object
	return r
}

// by puts the user into a further group.
func by(r admissionv1.AdmissionRequest, group string) admissionv1.AdmissionRequest {
	r.UserInfo.Groups = append(r.UserInfo.Groups, group)
	return r
}

// about fills in what kube-apiserver says of an object in every operation.
func about(o object) admissionv1.AdmissionRequest {
	gvk := o.GetObjectKind().GroupVersionKind()
	kind := metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	resource := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: resources[gvk.Kind]}
	dryRun := false
	return admissionv1.AdmissionRequest{
		Kind: kind, RequestKind: &kind,
		Resource: resource, RequestResource: &resource,
		Namespace: o.GetNamespace(), Name: o.GetName(),
		UserInfo: authenticationv1.UserInfo{Username: "ann", Groups: []string{"developers", "system:authenticated"}},
		DryRun:   &dryRun,
	}
}

// resources are the plural names of the sample kinds.
var resources = map[string]string{"Pod": "pods", "Deployment": "deployments", "Lease": "leases"}

func encode(o object) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("demo: a sample object does not marshal: %v", err))
	}
	return raw
}

// review wraps a request the way kube-apiserver sends it.
func review(r admissionv1.AdmissionRequest, uid string) ([]byte, error) {
	r.UID = types.UID(uid)
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &r,
	})
}
