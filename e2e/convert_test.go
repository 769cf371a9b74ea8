// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const version2Only = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: autoscalers}
webhooks:
- name: autoscalers.e2e.example.com
  clientConfig: {url: "$URL/autoscalers", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [autoscaling], apiVersions: [v2], resources: [horizontalpodautoscalers], scope: Namespaced}]
  matchPolicy: Equivalent
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// A webhook that knows autoscaling/v2 is asked when a user writes autoscaling/v1,
// with the object converted: the apiserver does it for the registration.
func TestObjectsAreConvertedForWebhooks(t *testing.T) {
	c := shared.east
	dispatch(t, []*cluster{c}, version2Only)
	shared.webhooks.handle("/autoscalers", deny(http.StatusForbidden, "no autoscalers"))
	namespace, half := c.namespace(t, nil), int32(50)
	h := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef:                 autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:                    3,
			TargetCPUUtilizationPercentage: &half,
		},
	}
	_, err := c.client.AutoscalingV1().HorizontalPodAutoscalers(namespace).Create(t.Context(), h, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "no autoscalers") {
		t.Errorf("the client sees %v", err)
	}
	calls := shared.webhooks.callsOf("/autoscalers")
	if len(calls) != 1 {
		t.Fatalf("%d calls, want 1", len(calls))
	}
	r := calls[0].request
	if r.Resource.Version != "v2" || r.RequestResource.Version != "v1" {
		t.Errorf("resource %v, requested %v", r.Resource, r.RequestResource)
	}
	var converted autoscalingv2.HorizontalPodAutoscaler
	if err := json.Unmarshal(r.Object.Raw, &converted); err != nil {
		t.Fatal(err)
	}
	if converted.APIVersion != "autoscaling/v2" || len(converted.Spec.Metrics) != 1 || *converted.Spec.Metrics[0].Resource.Target.AverageUtilization != half {
		t.Errorf("the object is %s", r.Object.Raw)
	}
}
