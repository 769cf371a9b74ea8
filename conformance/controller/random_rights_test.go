// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"hash/fnv"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"
)

// asking are the controllers that ask the cluster's authorizer.
var asking = []sample.Controller{
	{Name: "CertificateApproval", Random: judged, Clustered: true, Comes: []string{"validating allowed", "validating denied 403"}},
	{Name: "CertificateSigning", Random: judged, Clustered: true, Comes: []string{"validating allowed", "validating denied 403"}},
	{Name: "ClusterTrustBundleAttest", Random: bundle, Clustered: true, Comes: []string{"validating allowed", "validating denied 403"}},
	{Name: "OwnerReferencesPermissionEnforcement", Random: owned, Comes: []string{"validating allowed", "validating denied 403"}},
}

// Authorize implements hook.Caller. Its answers are drawn by what it is asked, as those of
// the authorizer that kube-apiserver's plugins ask, rights.go of ../kubernetes, are: a
// question in other words has another answer.
func (q *request) Authorize(spec *authorizationv1.SubjectAccessReviewSpec, _ time.Time) (status authorizationv1.SubjectAccessReviewStatus, err error) {
	asked, do := fnv.New64a(), spec.ResourceAttributes
	fmt.Fprintf(asked, "%d %q %q %q %q %q %q %q %q", q.rights, spec.User, do.Verb, do.Namespace, do.Group, do.Version, do.Resource, do.Subresource, do.Name)
	switch asked.Sum64() % 6 {
	case 0, 1:
		status.Allowed = true
	case 2:
		status.Allowed, status.Reason, status.EvaluationError = true, "a role", "another role is missing"
	case 3:
		status.Denied, status.Reason = true, "it is denied"
	case 4:
		status.Reason, status.EvaluationError = "no role", "a role is missing"
	}
	return status, nil
}

var signers = []string{certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeletServingSignerName, "example.com/web", "example.com/db", "example.com", ""}

// judged is about what becomes of a request for a certificate.
func judged(d sample.Dice) *sample.Request {
	q := &sample.Request{
		Operation: sample.Pick(d, admissionv1.Create, admissionv1.Update, admissionv1.Update, admissionv1.Update, admissionv1.Update),
		Resource:  certificatesv1.SchemeGroupVersion.WithResource(sample.Pick(d, "certificatesigningrequests", "certificatesigningrequests", "certificatesigningrequests", "others")),
		Kind:      "CertificateSigningRequest", Subresource: sample.Pick(d, "", "approval", "approval", "status", "status", "status"), Name: "ann",
	}
	draw := func() *certificatesv1.CertificateSigningRequest {
		c := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "ann"}}
		c.Spec.SignerName = sample.Pick(d, signers...)
		c.Status.Certificate = []byte(sample.Pick(d, "", "", "one", "another"))
		if d.One(3) {
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: sample.Pick(d, certificatesv1.CertificateApproved, certificatesv1.CertificateDenied), Status: corev1.ConditionTrue}}
		}
		return c
	}
	object := draw()
	q.Object = object
	if q.Operation == admissionv1.Update {
		q.Old = draw()
		if d.One(4) {
			q.Old = object
		}
	}
	return q
}

// bundle is about trust anchors.
func bundle(d sample.Dice) *sample.Request {
	q := &sample.Request{
		Operation: sample.Pick(d, admissionv1.Create, admissionv1.Update, admissionv1.Update),
		Resource:  certificatesv1beta1.SchemeGroupVersion.WithResource(sample.Pick(d, "clustertrustbundles", "clustertrustbundles", "clustertrustbundles", "others")),
		Kind:      "ClusterTrustBundle", Name: "example.com:web:a",
	}
	signer := sample.Pick(d, signers...)
	draw := func() *certificatesv1beta1.ClusterTrustBundle {
		b := &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "example.com:web:a"}}
		b.Spec.SignerName, b.Spec.TrustBundle = signer, sample.Pick(d, "anchors", "anchors", "anchors", "others")
		if d.One(4) {
			b.Spec.SignerName = sample.Pick(d, signers...)
		}
		if d.One(2) { // what only the garbage collector writes
			b.Finalizers, b.OwnerReferences = sample.Some(d, 2, func() string { return sample.Pick(d, "example.com/a", "example.com/b") }), owners(d)
			b.ManagedFields = sample.Some(d, 2, func() metav1.ManagedFieldsEntry { return metav1.ManagedFieldsEntry{Manager: sample.Pick(d, "a", "b")} })
		}
		if d.One(4) {
			b.Labels = map[string]string{"team": sample.Pick(d, "a", "b")}
		}
		return b
	}
	q.Object = draw()
	if q.Operation == admissionv1.Update {
		q.Old = draw()
	}
	return q
}

// owned is about the owners of objects.
func owned(d sample.Dice) *sample.Request {
	q := &sample.Request{
		Operation: sample.Pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Update, admissionv1.Update, admissionv1.Update, admissionv1.Delete),
		Resource:  corev1.SchemeGroupVersion.WithResource(sample.Pick(d, "pods", "pods", "services")), Kind: "Pod",
		Subresource: sample.Pick(d, "", "", "", "", "status", "ephemeralcontainers"), Name: sample.Pick(d, "", "web", "web"), Namespace: sample.Pick(d, "shop", "bank"),
	}
	draw := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: q.Namespace, OwnerReferences: owners(d)}}
	}
	if q.Operation != admissionv1.Delete {
		q.Object = draw()
	}
	if q.Operation != admissionv1.Create {
		q.Old = draw()
		if d.One(4) {
			q.Old = q.Object
		}
	}
	if q.Old == nil && q.Operation == admissionv1.Delete {
		q.Old = draw()
	}
	return q
}

func owners(d sample.Dice) []metav1.OwnerReference {
	return sample.Some(d, 4, func() metav1.OwnerReference {
		of := sample.Pick(d, "v1 Pod", "v1 Node", "v1 Namespace", "v1 ReplicationController", "apps/v1 ReplicaSet", "apps/v1 DaemonSet", "batch/v1 CronJob", "batch/v1 Job",
			"rbac.authorization.k8s.io/v1 ClusterRole", "networking.k8s.io/v1 Ingress", "storage.k8s.io/v1 StorageClass", "v1 Unknown", "example.com/v1 Pod", "a/b/c Pod")
		r := metav1.OwnerReference{Name: sample.Pick(d, "a", "b"), UID: types.UID(sample.Pick(d, "1", "2", "3")), BlockOwnerDeletion: sample.Maybe(d, true, true, false), Controller: sample.Maybe(d, true, false)}
		fmt.Sscan(of, &r.APIVersion, &r.Kind)
		return r
	})
}
