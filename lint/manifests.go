// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Reader makes an Input of manifests, as kubectl prints them: webhook configurations,
// and Services, EndpointSlices, Namespaces and APIServices as far as they are there.
// Objects of other kinds are left out.
type Reader struct {
	in     Input
	slices bool // there are EndpointSlices
	ready  map[ServiceName]int
}

// Read reads the documents of a file, in YAML or JSON.
func (r *Reader) Read(file string, data []byte) error {
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var document json.RawMessage
		switch err := documents.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(document) == 0 {
			continue
		}
		if err := r.object(file, document, metav1.TypeMeta{}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
}

// Input returns what was read.
func (r *Reader) Input() Input {
	for name, s := range r.in.Services {
		s.Ready, s.Counted = r.ready[name], r.slices && s.Counted
		r.in.Services[name] = s
	}
	return r.in
}

// KnowServices says that the Services that are read are all that there are of those that
// webhooks name.
func (r *Reader) KnowServices() {
	if r.in.Services == nil {
		r.in.Services = map[ServiceName]Service{}
	}
}

func (r *Reader) object(file string, document json.RawMessage, listed metav1.TypeMeta) error {
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(document, &head); err != nil {
		return err
	}
	if head.Kind == "" {
		head.TypeMeta = listed
	}
	group, version, _ := strings.Cut(head.APIVersion, "/")
	var err error
	switch kind := head.Kind; {
	case strings.HasSuffix(kind, "List"):
		return r.list(file, document, metav1.TypeMeta{Kind: strings.TrimSuffix(kind, "List"), APIVersion: head.APIVersion})
	case group == admissionregistrationv1.GroupName && (kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration"):
		var c struct {
			Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks"`
		}
		err = json.Unmarshal(document, &c)
		r.in.Configurations = append(r.in.Configurations, Configuration{
			Object: kind + "/" + head.Name, File: file, Name: head.Name, Annotations: head.Annotations, Mutating: kind == "MutatingWebhookConfiguration", Beta: version == "v1beta1",
			Webhooks: withPolicies(c.Webhooks, version == "v1beta1"),
		})
	case kind == "Service" && head.APIVersion == "v1":
		err = r.service(&head, document)
	case kind == "EndpointSlice" && group == "discovery.k8s.io":
		err = r.slice(&head, document)
	case kind == "Namespace" && head.APIVersion == "v1":
		if r.in.Namespaces == nil {
			r.in.Namespaces = map[string]map[string]string{}
		}
		r.in.Namespaces[head.Name] = head.Labels
	case kind == "APIService" && group == "apiregistration.k8s.io":
		err = r.apiService(&head, document)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", head.Kind, head.Name, err)
	}
	return nil
}

// withPolicies sets the failure policies that v1beta1 does not have as v1 does.
func withPolicies(list []admissionregistrationv1.MutatingWebhook, beta bool) []admissionregistrationv1.MutatingWebhook {
	for i := range list {
		if beta && list[i].FailurePolicy == nil {
			list[i].FailurePolicy = new(admissionregistrationv1.Ignore)
		}
	}
	return list
}

func (r *Reader) list(file string, document json.RawMessage, listed metav1.TypeMeta) error {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		if err := r.object(file, item, listed); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) service(head *metav1.PartialObjectMetadata, document json.RawMessage) error {
	var s struct {
		Spec struct {
			Type     string            `json:"type"`
			Selector map[string]string `json:"selector"`
		} `json:"spec"`
	}
	if r.in.Services == nil {
		r.in.Services = map[ServiceName]Service{}
	}
	err := json.Unmarshal(document, &s)
	r.in.Services[ServiceName{head.Namespace, head.Name}] = Service{Selector: s.Spec.Selector, Counted: s.Spec.Type != "ExternalName"}
	return err
}

func (r *Reader) slice(head *metav1.PartialObjectMetadata, document json.RawMessage) error {
	var s struct {
		Endpoints []struct {
			Conditions struct {
				Ready *bool `json:"ready"`
			} `json:"conditions"`
		} `json:"endpoints"`
	}
	if r.ready == nil {
		r.ready = map[ServiceName]int{}
	}
	r.slices = true
	err := json.Unmarshal(document, &s)
	for _, e := range s.Endpoints {
		if or(e.Conditions.Ready, true) {
			r.ready[ServiceName{head.Namespace, head.Labels["kubernetes.io/service-name"]}]++
		}
	}
	return err
}

func (r *Reader) apiService(head *metav1.PartialObjectMetadata, document json.RawMessage) error {
	var s struct {
		Spec struct {
			Group   string `json:"group"`
			Service *struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"service"`
		} `json:"spec"`
	}
	err := json.Unmarshal(document, &s)
	if of := s.Spec.Service; of != nil { // others are the kube-apiserver's own
		r.in.APIServices = append(r.in.APIServices, APIService{head.Name, s.Spec.Group, ServiceName{of.Namespace, of.Name}})
	}
	return err
}
