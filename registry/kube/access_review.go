// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"io"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/json"
)

const reviewKind = "SubjectAccessReview"

// accessReview is of an answer what counts. A server that is no API server may answer with
// any object: that one says whether it allows is what makes it an answer.
type accessReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Status     *struct {
		Allowed         *bool  `json:"allowed"`
		Denied          bool   `json:"denied"`
		Reason          string `json:"reason"`
		EvaluationError string `json:"evaluationError"`
	} `json:"status"`
}

// readReview reads what an API has answered. What is not well formed, or both allows and
// denies, is an error.
func readReview(from io.Reader) (authorizationv1.SubjectAccessReviewStatus, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	var r accessReview
	duplicates, err := json.UnmarshalStrict(text, &r, json.DisallowDuplicateFields)
	s := r.Status
	switch {
	case err != nil, len(duplicates) > 0, r.APIVersion != authorizationv1.SchemeGroupVersion.String(), r.Kind != reviewKind, s == nil, s.Allowed == nil:
		return authorizationv1.SubjectAccessReviewStatus{}, errNoJSON
	case *s.Allowed && s.Denied:
		return authorizationv1.SubjectAccessReviewStatus{}, errBothAnswers
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: *s.Allowed, Denied: s.Denied, Reason: s.Reason, EvaluationError: s.EvaluationError}, nil
}
