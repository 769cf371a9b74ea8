// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// class is the metadata of a class that may be the default one.
func (d Dice) class(name string, annotations ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name}
	if !d.One(5) {
		m.CreationTimestamp = metav1.Unix(1e9+int64(d.IntN(3)), 0)
	}
	if !d.One(3) {
		m.Annotations = map[string]string{Pick(d, annotations...): Pick(d, "true", "true", "false", "", "True")}
	}
	return m
}

func (q *Request) storageClasses(d Dice) {
	for _, name := range []string{"gold", "silver", "bronze"} {
		if d.One(4) {
			continue
		}
		q.store(&storagev1.StorageClass{
			ObjectMeta:           d.class(name, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
			AllowVolumeExpansion: Maybe(d, true, true, false),
		}, "StorageClass")
	}
}

func claim(d Dice) *Request {
	q := &Request{
		Operation: Pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Update, admissionv1.Update, admissionv1.Delete), Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
		Kind: "PersistentVolumeClaim", Subresource: Pick(d, "", "", "", "", "", "status"), Name: Pick(d, "", "data"),
	}
	draw := func() *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: d.metadata()}
		if d.One(4) {
			c.Annotations = map[string]string{Pick(d, "a", corev1.BetaStorageClassAnnotation, corev1.BetaStorageClassAnnotation): Pick(d, "", "gold", "silver", "unknown")}
		}
		c.Spec.StorageClassName = Maybe(d, "", "gold", "gold", "gold", "silver", "unknown")
		if q.Operation == admissionv1.Create && d.One(2) {
			c.Annotations, c.Spec.StorageClassName = nil, nil
		}
		c.Spec.Resources.Requests = corev1.ResourceList{}
		if !d.One(6) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(Pick(d, "1Gi", "1024Mi", "2Gi", "500Mi", "3G", "10E"))
		}
		c.Status.Phase = Pick(d, corev1.ClaimBound, corev1.ClaimBound, corev1.ClaimPending, "")
		return c
	}
	if q.Operation != admissionv1.Delete {
		q.Object = draw()
	}
	if q.Operation != admissionv1.Create {
		q.Old = draw()
	}
	q.storageClasses(d)
	return q
}

func ingress(d Dice) *Request {
	q := &Request{
		Operation: Pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Create, admissionv1.Update), Resource: networkingv1.SchemeGroupVersion.WithResource("ingresses"),
		Kind: "Ingress", Subresource: Pick(d, "", "", "", "", "", "status"), Name: "web",
	}
	i := &networkingv1.Ingress{ObjectMeta: d.metadata(), Spec: networkingv1.IngressSpec{IngressClassName: Maybe(d, "", "nginx", "unknown")}}
	if d.One(4) {
		i.Annotations = map[string]string{Pick(d, "a", "kubernetes.io/ingress.class"): Pick(d, "", "nginx")}
	}
	q.Object = i
	if q.Operation == admissionv1.Update {
		q.Old = i
	}
	for _, name := range []string{"nginx", "envoy", "traefik"} {
		if !d.One(4) {
			q.store(&networkingv1.IngressClass{ObjectMeta: d.class(name, networkingv1.AnnotationIsDefaultIngressClass)}, "IngressClass")
		}
	}
	return q
}

func service(d Dice) *Request {
	q := &Request{
		Operation: Pick(d, admissionv1.Create, admissionv1.Update, admissionv1.Update), Resource: corev1.SchemeGroupVersion.WithResource("services"),
		Kind: "Service", Subresource: Pick(d, "", "", "", "", "", "status"), Name: "web",
	}
	draw := func() *corev1.Service {
		return &corev1.Service{ObjectMeta: d.metadata(), Spec: corev1.ServiceSpec{ExternalIPs: Some(d, 4, func() string { return Pick(d, "1.1.1.1", "2.2.2.2", "3.3.3.3") })}}
	}
	q.Object = draw()
	if q.Operation == admissionv1.Update {
		q.Old = draw()
	}
	return q
}

// signed are requests for certificates of some groups, and what is none.
var signed = sync.OnceValue(func() (list [][]byte) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	for _, groups := range [][]string{nil, {"dev"}, {"system:masters"}, {"dev", "system:masters"}} {
		der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann", Organization: groups}}, key))
		list = append(list, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	return append(list, []byte("none"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("no")}))
})

func certificate(d Dice) *Request {
	q := &Request{
		Operation: Pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Update), Resource: certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"),
		Kind: "CertificateSigningRequest", Subresource: Pick(d, "", "", "", "", "approval"), Name: Pick(d, "", "ann"),
	}
	object := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "ann"}}
	object.Spec.SignerName = Pick(d, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeletServingSignerName, "")
	object.Spec.Request = Pick(d, signed()...)
	q.Object = object
	if q.Operation == admissionv1.Update {
		q.Old = object
	}
	return q
}
