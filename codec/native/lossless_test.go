// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec/native"
)

// kinds returns the kinds that a cluster admits objects of.
func kinds(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		corev1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	return scheme
}

// asWebhooksSee compares what two webhooks decoded: absent is empty, and quantities
// and times are what they stand for.
func asWebhooksSee() cmp.Options {
	return cmp.Options{
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b resource.Quantity) bool { return a.String() == b.String() }),
		cmp.Comparer(func(a, b metav1.Time) bool { return a.Time.Equal(b.Time) }),
		cmp.Comparer(func(a, b metav1.MicroTime) bool { return a.Time.Equal(b.Time) }),
	}
}

// TestEveryKindIsLossless: random objects of all kinds, which are what the JSON
// says or are given up. Nothing random is given up but for a reason.
func TestEveryKindIsLossless(t *testing.T) {
	scheme, transcoder := kinds(t), native.New()
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme))
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		lossless := 0
		for range 20 {
			object, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			fill.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(gvk)
			data, err := json.Marshal(object)
			if err != nil {
				continue // a raw extension that is no JSON
			}
			if checkLossless(t, scheme, transcoder, gvk, data) {
				lossless++
			}
		}
		if lossless == 0 && !isPlumbing(gvk.Kind) {
			t.Errorf("%v is never transcoded", gvk)
		}
	}
}

// isPlumbing tells kinds that are in every group and admitted in none.
func isPlumbing(kind string) bool {
	switch kind {
	case "WatchEvent", "Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList":
		return true
	}
	return false
}

func checkLossless(t *testing.T, scheme *runtime.Scheme, transcoder *native.Transcoder, gvk schema.GroupVersionKind, data []byte) bool {
	t.Helper()
	out, ok := transcoder.AppendNative(nil, []byte(gvk.GroupVersion().String()), []byte(gvk.Kind), data)
	if !ok {
		return false
	}
	want, got := fresh(t, scheme, gvk), fresh(t, scheme, gvk)
	if err := utiljson.Unmarshal(data, want); err != nil {
		t.Fatalf("%v of %s", err, data)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(out[len("k8s\x00"):]); err != nil {
		t.Fatal(err)
	}
	if err := got.(interface{ Unmarshal([]byte) error }).Unmarshal(envelope.Raw); err != nil {
		t.Fatal(err)
	}
	got.GetObjectKind().SetGroupVersionKind(envelope.GroupVersionKind())
	if diff := cmp.Diff(want, got, asWebhooksSee()); diff != "" {
		t.Fatalf("%s (-JSON +protobuf)\n%s", data, diff)
	}
	return true
}

func fresh(t *testing.T, scheme *runtime.Scheme, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	object, err := scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// FuzzAppendNative: of any JSON at all, what is not given up is lossless.
func FuzzAppendNative(f *testing.F) {
	scheme, transcoder := kinds(f), native.New()
	for _, object := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m"}}}]},"status":{}}`,
		`{"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":3,"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},"template":{}}}`,
		`{"kind":"StatefulSet","apiVersion":"apps/v1","spec":{"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim"}]}}`,
		`{"kind":"Secret","apiVersion":"v1","data":{"a":"eA==","b":null},"stringData":{"c":""}}`,
		`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","spec":{"renewTime":"2026-01-02T03:04:05.678901Z"}}`,
		`{"kind":"NetworkPolicy","apiVersion":"networking.k8s.io/v1","spec":{"podSelector":{},"ingress":[{"ports":[{"port":"http"},{"port":80}]}],"egress":[]}}`,
		`{"kind":"ControllerRevision","apiVersion":"apps/v1","data":{"x": [1.0]},"revision":1}`,
		`{"kind":"Eviction","apiVersion":"policy/v1","deleteOptions":{"kind":"DeleteOptions","gracePeriodSeconds":0}}`,
	} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var meta runtime.TypeMeta
		if !json.Valid(data) || json.Unmarshal(data, &meta) != nil {
			return // the scanner has refused it
		}
		checkLossless(t, scheme, transcoder, schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind), data)
	})
}
