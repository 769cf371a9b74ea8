// SPDX-License-Identifier: Apache-2.0

// Package payload makes the reference payloads of the benchmarks: the reviews that
// kube-apiserver sends, the same in every run, and varied enough not to flatter a
// branch predictor or a compressor.
package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Review is an AdmissionReview as kube-apiserver writes it.
type Review struct {
	Name string // as benchmarks are called
	Body []byte
	uid  int // offset of its last digits in Body
}

// PodCreate is the creation of a Pod, of about 6 KB.
func PodCreate() Review { return PodCreates(1)[0] }

// PodCreates are the creations of n Pods with other words in them: a processor
// learns the branches of a small document by heart if it sees no other.
func PodCreates(n uint64) []Review {
	var list []Review
	for variant := range n {
		list = append(list, review("pod-6KB", &request{
			Kind: kind{"", "v1", "Pod"}, Resource: resource{"", "v1", "pods"}, Name: "web-7d4b9c-x2x4z", Operation: "CREATE",
			Object: Pod(3, variant), Options: options("CreateOptions"),
		}))
	}
	return list
}

// DeploymentUpdate is the update of a Deployment, of about 18 KB with the old one.
func DeploymentUpdate() Review { return DeploymentUpdates(1)[0] }

// DeploymentUpdates are the updates of n Deployments with other words in them.
func DeploymentUpdates(n uint64) []Review {
	var list []Review
	for variant := range n {
		list = append(list, review("update-18KB", &request{
			Kind: kind{"apps", "v1", "Deployment"}, Resource: resource{"apps", "v1", "deployments"}, Name: "web", Operation: "UPDATE",
			Object: Deployment(5, 4, variant), OldObject: Deployment(5, 3, variant), Options: options("UpdateOptions"),
		}))
	}
	return list
}

// ConfigMapCreate is the creation of a ConfigMap of about 1 MB.
func ConfigMapCreate() Review {
	return review("configmap-1MB", &request{
		Kind: kind{"", "v1", "ConfigMap"}, Resource: resource{"", "v1", "configmaps"}, Name: "files", Operation: "CREATE",
		Object: ConfigMap(1 << 20), Options: options("CreateOptions"),
	})
}

// CRDCreate is the creation of a CustomResourceDefinition of about 1 MB.
func CRDCreate() Review {
	return review("crd-1MB", &request{
		Kind:     kind{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
		Resource: resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions"}, Name: "things.example.com", Operation: "CREATE",
		Object: CustomResourceDefinition(1 << 20), Options: options("CreateOptions"),
	})
}

// LargestUpdate is the update of a ConfigMap of about 3 MiB, with the old one.
func LargestUpdate() Review {
	return review("update-6MB", &request{
		Kind: kind{"", "v1", "ConfigMap"}, Resource: resource{"", "v1", "configmaps"}, Name: "files", Operation: "UPDATE",
		Object: ConfigMap(3 << 20), OldObject: ConfigMap(3 << 20), Options: options("UpdateOptions"),
	})
}

// uidDigits is how much of a uid Number writes.
const uidDigits = 12

// Number makes the uid the nth one. Nobody else may be using Body.
func (r *Review) Number(n uint64) {
	digits := r.Body[r.uid : r.uid+uidDigits]
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
}

// UID returns the uid.
func (r *Review) UID() string {
	return string(r.Body[r.uid+uidDigits-len(uid) : r.uid+uidDigits])
}

// Clone returns a copy with a Body of its own.
func (r *Review) Clone() Review {
	return Review{Name: r.Name, Body: bytes.Clone(r.Body), uid: r.uid}
}

const uid = "6d1f0f0c-2a64-4a39-9a53-000000000000"

// review completes a request with what all have in common.
func review(name string, r *request) Review {
	r.UID, r.RequestKind, r.RequestResource = uid, r.Kind, r.Resource
	r.Namespace, _ = r.Object["metadata"].(map[string]any)["namespace"].(string) // some have none
	r.UserInfo = userInfo{
		Username: "system:serviceaccount:kube-system:replicaset-controller",
		UID:      "3c1f9a52-7d4e-4b0a-8f6e-2b9d1c7e5a40",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
		Extra:    map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=5b8f7a0e-1d0c-4b8e-9a3c-2f6d7c1e9b04"}},
	}
	body, err := json.Marshal(struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Request    *request `json:"request"`
	}{"AdmissionReview", "admission.k8s.io/v1", r})
	if err != nil {
		panic(fmt.Sprintf("encode the payload %s: %v", name, err)) // of strings, numbers and maps of these
	}
	return Review{Name: name, Body: body, uid: bytes.Index(body, []byte(uid)) + len(uid) - uidDigits}
}

// request has the fields of an AdmissionRequest in the order in which
// kube-apiserver writes them.
type request struct {
	UID             string         `json:"uid"`
	Kind            kind           `json:"kind"`
	Resource        resource       `json:"resource"`
	RequestKind     kind           `json:"requestKind"`
	RequestResource resource       `json:"requestResource"`
	Name            string         `json:"name"`
	Namespace       string         `json:"namespace,omitempty"`
	Operation       string         `json:"operation"`
	UserInfo        userInfo       `json:"userInfo"`
	Object          map[string]any `json:"object"`
	OldObject       map[string]any `json:"oldObject"`
	DryRun          bool           `json:"dryRun"`
	Options         map[string]any `json:"options"`
}

type kind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type resource struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

type userInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

func options(kind string) map[string]any {
	return map[string]any{"kind": kind, "apiVersion": "meta.k8s.io/v1", "fieldManager": "kube-controller-manager"}
}
