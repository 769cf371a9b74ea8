// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Allowed lets the request pass. Each warning is shown to the user on a line of
// its own; keep it short, callers cut what is longer than some hundred runes.
func Allowed(warnings ...string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}
}

// Denied refuses the request with an HTTP status code from 400 to 599, mostly
// http.StatusForbidden, and a message for the user.
func Denied(code int32, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// PatchResponse lets the request pass with the object changed by the operations,
// in their order. Without operations it is Allowed. A value that cannot be
// written as JSON denies the request with code 500: what should have been
// changed must not pass unchanged.
func PatchResponse(ops ...Operation) *admissionv1.AdmissionResponse {
	if len(ops) == 0 {
		return Allowed()
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return Denied(http.StatusInternalServerError, fmt.Sprintf("the patch cannot be written: %v", err))
	}
	jsonPatch := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &jsonPatch}
}
