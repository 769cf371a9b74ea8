// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// dispatcher asks all webhooks about every review. One that gives no answer
// counts as a denial.
type dispatcher struct {
	client   *http.Client
	webhooks []string // URLs
}

// ServeHTTP answers one AdmissionReview.
func (d *dispatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review, err := decode(body)
	if err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("not an AdmissionReview: %v", err), http.StatusBadRequest)
		return
	}
	response := merge(d.askAll(r.Context(), review))
	response.UID = review.Request.UID
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}) // the caller has left
}

// askAll returns the webhooks' answers in their order.
func (d *dispatcher) askAll(ctx context.Context, review *admissionv1.AdmissionReview) []*admissionv1.AdmissionResponse {
	answers := make([]*admissionv1.AdmissionResponse, len(d.webhooks))
	var wg sync.WaitGroup
	for i, url := range d.webhooks {
		wg.Go(func() {
			answer, err := d.ask(ctx, url, review)
			if err != nil {
				answer = denied(http.StatusInternalServerError, fmt.Sprintf("failed calling webhook %s: %v", url, err))
			}
			answers[i] = answer
		})
	}
	wg.Wait()
	return answers
}

func (d *dispatcher) ask(ctx context.Context, url string, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionResponse, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	got, err := decode(answer)
	if err != nil {
		return nil, err
	}
	if got.Response == nil || got.Response.UID != review.Request.UID {
		return nil, fmt.Errorf("no answer to %s", review.Request.UID)
	}
	return got.Response, nil
}

// codecs knows AdmissionReviews, as the API server's own webhook client does.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme)
}()

func decode(body []byte) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	if _, _, err := codecs.UniversalDeserializer().Decode(body, nil, review); err != nil {
		return nil, err
	}
	return review, nil
}

// merge allows what all allow, and says what those that do not said.
func merge(answers []*admissionv1.AdmissionResponse) *admissionv1.AdmissionResponse {
	merged := &admissionv1.AdmissionResponse{Allowed: true}
	var messages []string
	for _, a := range answers {
		merged.Warnings = append(merged.Warnings, a.Warnings...)
		if a.Allowed {
			continue
		}
		merged.Allowed = false
		if a.Result != nil {
			messages = append(messages, a.Result.Message)
		}
	}
	if !merged.Allowed {
		merged.Result = &metav1.Status{Code: http.StatusForbidden, Message: strings.Join(messages, "\n")}
	}
	return merged
}

func denied(code int32, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: message}}
}
