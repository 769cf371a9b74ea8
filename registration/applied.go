// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ReadApplied finds the registration among objects of a cluster, as "kubectl get -o yaml"
// prints them: YAML or JSON, single objects or lists. Objects that are not the
// registration's are passed over. The error says what cannot be read.
func ReadApplied(data []byte, static bool) (Applied, error) {
	var found Applied
	name := form{options: Options{Static: static}}.meta().Name
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var document json.RawMessage
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err == nil && len(document) > 0 && string(document) != "null" {
			err = found.add(document, name)
		}
		if err != nil {
			return Applied{}, fmt.Errorf("read what is applied: %w", err)
		}
	}
}

// add takes the object, or those of a list, that is of the registration of that name.
func (a *Applied) add(document []byte, name string) error {
	var head struct {
		metav1.TypeMeta
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return err
	}
	for _, item := range head.Items {
		if err := a.add(item, name); err != nil {
			return err
		}
	}
	if head.APIVersion != admissionregistrationv1.SchemeGroupVersion.String() || head.Metadata.Name != name {
		return nil
	}
	switch head.Kind {
	case "ValidatingWebhookConfiguration":
		a.Validating = &admissionregistrationv1.ValidatingWebhookConfiguration{}
		return json.Unmarshal(document, a.Validating)
	case "MutatingWebhookConfiguration":
		a.Mutating = &admissionregistrationv1.MutatingWebhookConfiguration{}
		return json.Unmarshal(document, a.Mutating)
	}
	return nil
}
