// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// images denies pods whose images carry the tag :latest.
func images(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	pod, err := webhookserver.Object[corev1.Pod](req)
	if err != nil {
		return webhookserver.Denied(http.StatusBadRequest, err.Error())
	}
	for _, c := range pod.Spec.Containers {
		if strings.HasSuffix(c.Image, ":latest") {
			return webhookserver.Denied(http.StatusForbidden, fmt.Sprintf("container %q uses %s: name a version", c.Name, c.Image))
		}
	}
	return webhookserver.Allowed()
}

// owner requires the label "owner".
func owner(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	deployment, err := webhookserver.Object[appsv1.Deployment](req)
	if err != nil {
		return webhookserver.Denied(http.StatusBadRequest, err.Error())
	}
	if deployment.Labels["owner"] == "" {
		return webhookserver.Denied(http.StatusForbidden, `the label "owner" is missing`)
	}
	return webhookserver.Allowed()
}

// replicas wants at least two.
func replicas(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	deployment, err := webhookserver.Object[appsv1.Deployment](req)
	if err != nil {
		return webhookserver.Denied(http.StatusBadRequest, err.Error())
	}
	if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas < 2 {
		return webhookserver.Denied(http.StatusForbidden, "production wants at least 2 replicas")
	}
	return webhookserver.Allowed()
}

// labels adds the label "managed-by" where it is missing.
func labels(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	object, err := webhookserver.Object[metav1.PartialObjectMetadata](req)
	if err != nil {
		return webhookserver.Denied(http.StatusBadRequest, err.Error())
	}
	switch {
	case object.Labels["managed-by"] != "":
		return webhookserver.Allowed()
	case object.Labels == nil:
		return webhookserver.PatchResponse(webhookserver.Add("/metadata/labels", map[string]string{"managed-by": "platform"}))
	default:
		return webhookserver.PatchResponse(webhookserver.Add("/metadata/labels/managed-by", "platform"))
	}
}

// licenses is slow for pods whose name says so, broken for others, and else
// finds nothing.
func licenses(hang time.Duration) webhookserver.Func {
	return func(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		switch {
		case strings.HasPrefix(req.Name, "slow"):
			<-time.After(hang)
		case strings.HasPrefix(req.Name, "flaky"):
			return nil // which the handler answers with 500
		}
		resp := webhookserver.Allowed()
		resp.AuditAnnotations = map[string]string{"licenses": "none found"}
		return resp
	}
}
