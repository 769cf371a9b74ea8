// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// Adapt makes a controller-runtime handler a webhookserver.Func. Copy it into
// your webhook: it is all that the change takes.
func Adapt(handler admission.Handler) webhookserver.Func {
	return func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		request := admission.Request{AdmissionRequest: *req}
		response := handler.Handle(ctx, request)
		if err := response.Complete(request); err != nil { // writes the patches
			return webhookserver.Denied(http.StatusInternalServerError, err.Error())
		}
		return &response.AdmissionResponse
	}
}
