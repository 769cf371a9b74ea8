// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"bytes"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// unregistered is a scheme without types: serializers then decode into exactly
// the type that they are given. That is how a v1beta1 review is read as v1; the
// two have the same fields, with the same names and numbers.
var unregistered = runtime.NewScheme()

// The two forms on the wire. A decoder that is not strict lets fields of later
// Kubernetes versions pass.
var (
	jsonSerializer     = json.NewSerializerWithOptions(json.DefaultMetaFactory, unregistered, unregistered, json.SerializerOptions{})
	protobufSerializer = protobuf.NewSerializer(unregistered, unregistered)
)

// form is how a review is written, and its answer too.
type form struct {
	mediaType  string
	serializer runtime.Serializer
}

// formOf looks at what can be refused before the body is read.
func formOf(r *http.Request) (form, error) {
	if r.Method != http.MethodPost {
		return form{}, refusal(http.StatusMethodNotAllowed, "%s is not served here: POST an AdmissionReview", r.Method)
	}
	contentType := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && mediaType == mediaJSON:
		return form{mediaType: mediaJSON, serializer: jsonSerializer}, nil
	case err == nil && mediaType == mediaProtobuf:
		return form{mediaType: mediaProtobuf, serializer: protobufSerializer}, nil
	default:
		return form{}, refusal(http.StatusUnsupportedMediaType, "Content-Type %q is not read here: send %s or %s", contentType, mediaJSON, mediaProtobuf)
	}
}

// decode reads a review that can be answered. The review does not share body's
// memory.
func (f form) decode(body []byte) (*admissionv1.AdmissionReview, error) {
	review := new(admissionv1.AdmissionReview)
	_, kind, err := f.serializer.Decode(body, nil, review)
	switch {
	case err != nil:
		return nil, refusal(http.StatusBadRequest, "reading the body as an AdmissionReview in %s: %v", f.mediaType, err)
	case !isReview(*kind):
		return nil, refusal(http.StatusBadRequest, "%s is not read here: send an AdmissionReview of admission.k8s.io/v1 or v1beta1", kind)
	case review.Request == nil:
		return nil, refusal(http.StatusBadRequest, "the AdmissionReview has no request")
	case review.Request.UID == "":
		return nil, refusal(http.StatusBadRequest, "the AdmissionReview's request has no uid")
	}
	review.SetGroupVersionKind(*kind) // in protobuf only the envelope says it
	return review, nil
}

func isReview(kind schema.GroupVersionKind) bool {
	return kind == admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") ||
		kind == admissionv1beta1.SchemeGroupVersion.WithKind("AdmissionReview")
}

// encode writes the answer to a review, under that review's uid whatever the
// response says.
func (f form) encode(review *admissionv1.AdmissionReview, response *admissionv1.AdmissionResponse) ([]byte, error) {
	own := *response
	own.UID = review.Request.UID
	var answer bytes.Buffer
	err := f.serializer.Encode(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &own}, &answer)
	if err != nil {
		return nil, refusal(http.StatusInternalServerError, "writing the answer: %v", err)
	}
	return answer.Bytes(), nil
}
