// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// Template is an AdmissionReview that every call sends, each under a uid of its own.
type Template struct {
	document, request map[string]json.RawMessage
	resource          Resource
}

// ParseTemplate reads an AdmissionReview with a request, in JSON.
func ParseTemplate(data []byte) (*Template, error) {
	t := &Template{}
	var head struct {
		Kind    string `json:"kind"`
		Request *struct {
			Resource struct {
				Resource string `json:"resource"`
			} `json:"resource"`
			Namespace string `json:"namespace"`
		} `json:"request"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not an AdmissionReview in JSON: %w", err)
	}
	if head.Kind != "AdmissionReview" || head.Request == nil {
		return nil, errors.New("not an AdmissionReview with a request")
	}
	if err := json.Unmarshal(data, &t.document); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(t.document["request"], &t.request); err != nil {
		return nil, err
	}
	t.resource = Resource{Resource: head.Request.Resource.Resource, Namespace: head.Request.Namespace}
	return t, nil
}

// review returns the review under the uid of the call, and the object in it.
func (t *Template) review(c *history.Call) (body, object []byte) {
	request, document := maps.Clone(t.request), maps.Clone(t.document)
	request["uid"], _ = json.Marshal(c.UID)
	document["request"], _ = json.Marshal(request) // what was read can be written
	body, _ = json.Marshal(document)
	return body, request["object"]
}
