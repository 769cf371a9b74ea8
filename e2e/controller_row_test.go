// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindOfController is the kind of namespaces that a controller looks at.
var kindOfController = map[string]string{
	"LimitRanger": "limited", "PodNodeSelector": "selected", "PodTolerationRestriction": "tolerated",
}

// comesOfController is what comes up of those of which conformance has requests.
var comesOfController = map[string][]string{
	"AlwaysPullImages":                 {"changed", "allowed"},
	"CertificateSubjectRestriction":    {"allowed", "denied 403"},
	"DefaultIngressClass":              {"changed", "allowed"},
	"DefaultStorageClass":              {"changed", "allowed"},
	"DefaultTolerationSeconds":         {"changed"},
	"DenyServiceExternalIPs":           {"allowed", "denied 403"},
	"ExtendedResourceToleration":       {"changed", "allowed"},
	"LimitPodHardAntiAffinityTopology": {"allowed", "denied 403"},
	"LimitRanger":                      {"changed", "denied 403"},
	"PersistentVolumeClaimResize":      {"allowed", "denied 403"},
	"PodNodeSelector":                  {"changed", "denied 403"},
	"PodTolerationRestriction":         {"changed", "denied 500"},
	"Priority":                         {"changed", "denied 403"},
	"RuntimeClass":                     {"changed", "denied 403"},
}

// controllerRows are the controllers that have an original, and that are compared here.
func controllerRows() (rows []controllerRow) {
	for _, c := range sample.Controllers {
		kind := kindOfController[c.Name]
		if kind == "" {
			kind = "plain"
		}
		rows = append(rows, controllerRow{c.Name, kind, func(d sample.Dice, namespace, name string) []step {
			return requested(d, c.Name, c.Random(d), namespace, name)
		}, comesOfController[c.Name]})
	}
	return append(rows,
		controllerRow{"PodSecurity", "secured", func(d sample.Dice, namespace, name string) []step {
			q := sample.PodSecurity(d)
			if q.Subresource != "ephemeralcontainers" && q.Subresource != "resize" {
				q.Subresource = ""
			}
			return requested(d, "PodSecurity", q, namespace, name)
		}, []string{"allowed", "denied 403", "warned"}},
		controllerRow{"CertificateApproval", "plain", approvals("approval"), []string{"allowed", "denied 403"}},
		controllerRow{"CertificateSigning", "plain", approvals("status"), []string{"allowed", "denied 403"}},
		controllerRow{"ClusterTrustBundleAttest", "plain", bundles, []string{"allowed", "denied 403"}},
		controllerRow{"OwnerReferencesPermissionEnforcement", "plain", owners, []string{"allowed", "denied 403"}},
	)
}

// controllerFields are what controllers change, in objects that are created.
var controllerFields = map[string]string{
	"AlwaysPullImages": "spec.containers.imagePullPolicy", "DefaultIngressClass": "spec.ingressClassName", "DefaultStorageClass": "spec.storageClassName",
	"DefaultTolerationSeconds": "spec.tolerations", "ExtendedResourceToleration": "spec.tolerations", "PodTolerationRestriction": "spec.tolerations",
	"LimitRanger": "metadata.annotations", "PodNodeSelector": "spec.nodeSelector", "Priority": "spec.priority", "RuntimeClass": "spec.overhead",
}

// changed reports whether the stored object has another value than the sent one where the
// controller changes objects.
func (one *trial) changed(sent []byte, stored map[string]any) bool {
	path := controllerFields[one.controller]
	if path == "" {
		return false
	}
	var from map[string]any
	if unstructuredFrom(sent, &from) != nil {
		return false
	}
	if before, field, ok := strings.Cut(path, ".containers."); ok {
		a, _, _ := unstructured.NestedSlice(from, before, "containers")
		b, _, _ := unstructured.NestedSlice(stored, before, "containers")
		for i := range min(len(a), len(b)) {
			if set := a[i].(map[string]any)[field]; set != nil && set != b[i].(map[string]any)[field] {
				return true
			}
		}
		return false
	}
	a, _, _ := unstructured.NestedFieldNoCopy(from, strings.Split(path, ".")...)
	b, _, _ := unstructured.NestedFieldNoCopy(stored, strings.Split(path, ".")...)
	if one.controller == "ExtendedResourceToleration" {
		return strings.Count(fmt.Sprint(b), "key:example.com/gpu") > strings.Count(fmt.Sprint(a), "key:example.com/gpu")
	}
	return b != nil && !reflect.DeepEqual(a, b)
}

func unstructuredFrom(data []byte, into *map[string]any) error {
	u := unstructured.Unstructured{}
	err := u.UnmarshalJSON(data)
	*into = u.Object
	return err
}

// rightsOfTesters give three users what the API asks for, and one of them everything that
// controllers ask for, one some of it, one nothing.
const rightsOfTesters = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-tester}
rules:
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval, certificatesigningrequests/status], verbs: [update]}
- {apiGroups: [certificates.k8s.io], resources: [clustertrustbundles], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-tester}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-tester}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-some}
rules:
- {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kube-apiserver-client, "example.com/*"], verbs: [approve, sign, attest]}
- {apiGroups: [""], resources: [configmaps], verbs: [delete]}
- {apiGroups: [apps], resources: [deployments/finalizers], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-some}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-some}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-all}
rules:
- {apiGroups: [certificates.k8s.io], resources: [signers], verbs: [approve, sign, attest]}
- {apiGroups: [""], resources: [configmaps], verbs: [delete]}
- {apiGroups: ["*"], resources: ["*/finalizers"], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-all}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
`

func tester(d sample.Dice) string { return sample.Pick(d, "ann", "bob", "eve") }

var signers = []string{"kubernetes.io/kube-apiserver-client", "kubernetes.io/kubelet-serving", "example.com/a", "example.org/b"}

// approvals approve or deny a request for a certificate, or issue it.
func approvals(subresource string) func(sample.Dice, string, string) []step {
	return func(d sample.Dice, _, name string) []step {
		csr := controllerOf("CertificateSubjectRestriction").Random(d).Object.(*certificatesv1.CertificateSigningRequest)
		for strings.HasPrefix(string(csr.Spec.Request), "no") {
			csr = controllerOf("CertificateSubjectRestriction").Random(d).Object.(*certificatesv1.CertificateSigningRequest)
		}
		accept(d, "", csr, name, "")
		csr.Spec.SignerName = sample.Pick(d, signers...)
		r := certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
		csr.SetGroupVersionKind(r.GroupVersion().WithKind("CertificateSigningRequest"))
		condition := map[string]any{"type": sample.Pick(d, "Approved", "Denied"), "status": "True", "reason": "Tested"}
		if subresource == "status" {
			condition["type"] = "Failed"
		}
		issued := subresource == "status" && d.One(2)
		change := replaced(r, "", name, subresource, dryRun, func(o map[string]any) {
			if issued {
				_ = unstructured.SetNestedField(o, base64.StdEncoding.EncodeToString(shared.pki.PEM), "status", "certificate")
				return
			}
			_ = unstructured.SetNestedSlice(o, []any{condition}, "status", "conditions")
		})
		change.user = tester(d)
		return []step{created(csr, r, "", ""), change}
	}
}

// bundles vouch for the CAs of a signer.
func bundles(d sample.Dice, _, name string) []step {
	signer := sample.Pick(d, signers...)
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": strings.ReplaceAll(signer, "/", ":") + ":" + name},
		"spec":     map[string]any{"signerName": signer, "trustBundle": string(shared.pki.PEM)},
	}}
	r := schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"}
	o.SetGroupVersionKind(r.GroupVersion().WithKind("ClusterTrustBundle"))
	create := created(o, r, "", dryRun)
	create.user = tester(d)
	return []step{create}
}

// owners set or change the owners of an object.
func owners(d sample.Dice, namespace, name string) []step {
	draw := func() (list []any) {
		for i := range d.IntN(3) {
			kind := sample.Pick(d, [2]string{"v1", "Pod"}, [2]string{"apps/v1", "Deployment"}, [2]string{"apps/v1", "ReplicaSet"}, [2]string{"v1", "Node"}, [2]string{"example.com/v1", "Widget"})
			reference := map[string]any{"apiVersion": kind[0], "kind": kind[1], "name": fmt.Sprint("o", i), "uid": fmt.Sprint("u", i)}
			if d.One(2) {
				reference["blockOwnerDeletion"] = d.One(2)
			}
			list = append(list, reference)
		}
		return list
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	r := corev1.SchemeGroupVersion.WithResource("configmaps")
	m.SetGroupVersionKind(r.GroupVersion().WithKind("ConfigMap"))
	object := inJSON(m)
	_ = unstructured.SetNestedSlice(object, draw(), "metadata", "ownerReferences")
	create := created(&unstructured.Unstructured{Object: object}, r, namespace, dryRun)
	if d.One(2) {
		create.user = tester(d)
		return []step{create}
	}
	create.path = strings.TrimSuffix(create.path, dryRun)
	references := draw()
	change := replaced(r, namespace, name, "", dryRun, func(o map[string]any) {
		_ = unstructured.SetNestedSlice(o, references, "metadata", "ownerReferences")
	})
	change.user = tester(d)
	return []step{create, change}
}
