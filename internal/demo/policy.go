// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// policy is the logic of one sample webhook.
type policy func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// images denies pods whose images carry the tag :latest.
func images(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var pod corev1.Pod
	if err := json.Unmarshal(r.Object.Raw, &pod); err != nil {
		return deny(http.StatusBadRequest, err.Error())
	}
	for _, c := range pod.Spec.Containers {
		if strings.HasSuffix(c.Image, ":latest") {
			return deny(http.StatusForbidden, fmt.Sprintf("container %q uses %s: name a version", c.Name, c.Image))
		}
	}
	return allow()
}

// owner requires the label "owner".
func owner(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var deployment appsv1.Deployment
	if err := json.Unmarshal(r.Object.Raw, &deployment); err != nil {
		return deny(http.StatusBadRequest, err.Error())
	}
	if deployment.Labels["owner"] == "" {
		return deny(http.StatusForbidden, `the label "owner" is missing`)
	}
	return allow()
}

// replicas wants at least two.
func replicas(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var deployment appsv1.Deployment
	if err := json.Unmarshal(r.Object.Raw, &deployment); err != nil {
		return deny(http.StatusBadRequest, err.Error())
	}
	if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas < 2 {
		return deny(http.StatusForbidden, "production wants at least 2 replicas")
	}
	return allow()
}

// labels adds the label "managed-by" where it is missing.
func labels(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		return deny(http.StatusBadRequest, err.Error())
	}
	if object.Metadata.Labels["managed-by"] != "" {
		return allow()
	}
	patch := `[{"op":"add","path":"/metadata/labels/managed-by","value":"platform"}]`
	if object.Metadata.Labels == nil {
		patch = `[{"op":"add","path":"/metadata/labels","value":{"managed-by":"platform"}}]`
	}
	resp := allow()
	resp.Patch = []byte(patch)
	jsonPatch := admissionv1.PatchTypeJSONPatch
	resp.PatchType = &jsonPatch
	return resp
}

// licenses is slow for pods whose name says so, broken for others, and else
// finds nothing.
func licenses(hang time.Duration) policy {
	return func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		switch {
		case strings.HasPrefix(r.Name, "slow"):
			<-time.After(hang)
		case strings.HasPrefix(r.Name, "flaky"):
			return nil
		}
		resp := allow()
		resp.AuditAnnotations = map[string]string{"licenses": "none found"}
		return resp
	}
}

func allow() *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}
