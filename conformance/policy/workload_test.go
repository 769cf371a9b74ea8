// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"
)

// workload is the request that creates one.
func workload(k *sample.WorkloadKind, p *corev1.Pod) *policyAdmission {
	object := k.Of(p.DeepCopy())
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	guessed, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return &policyAdmission{Kind: k.GroupVersionKind, Resource: guessed, Subresource: k.Subresource, Name: p.Name, Namespace: p.Namespace, Operation: admission.Create, New: object}
}

// changedWorkload is the request that updates one.
func changedWorkload(k *sample.WorkloadKind, from, to *corev1.Pod) *policyAdmission {
	a := workload(k, to)
	a.Operation, a.Old = admission.Update, workload(k, from).New
	return a
}

// admissionOf is the request that creates an object, or connects with it.
func admissionOf(t *testing.T, doc []byte) *policyAdmission {
	t.Helper()
	text, err := yaml.YAMLToJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	a := &policyAdmission{Kind: *kind, Name: "web", Namespace: "shop", Operation: admission.Create, New: object}
	a.Resource, _ = meta.UnsafeGuessKindToResource(*kind)
	if connects, ok := strings.CutSuffix(kind.Kind, "Options"); ok {
		a.Resource.Resource, a.Subresource, a.Operation = "pods", strings.ToLower(strings.TrimPrefix(connects, "Pod")), admission.Connect
		return a
	}
	of, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	a.Name, a.Namespace = of.GetName(), of.GetNamespace()
	return a
}
