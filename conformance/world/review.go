// SPDX-License-Identifier: Apache-2.0

package world

import (
	"encoding/json"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/request"

	"github.com/admission-dispatcher/dispatcher/conformance/random"
)

// Review returns the AdmissionReview, in v1, that the API server sends of a.
func Review(a *random.Admission) ([]byte, error) {
	p, err := played(a)
	if err != nil {
		return nil, err
	}
	attributes := p.Attributes()
	versioned, err := admission.NewVersionedAttributes(attributes, a.Kind, objects)
	if err != nil {
		return nil, err
	}
	invocation := &generic.WebhookInvocation{Resource: a.Resource, Subresource: a.Subresource, Kind: a.Kind}
	review := request.CreateV1AdmissionReview("u-1", versioned, invocation)
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	return json.Marshal(review)
}
