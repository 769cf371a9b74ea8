// SPDX-License-Identifier: Apache-2.0

package controller_test

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
	"k8s.io/apimachinery/pkg/runtime"
)

// controllers are the plugins that have an original, with random requests, and what comes up
// in one of a hundred at least.
var controllers = []struct {
	name      string
	random    func(dice) *request
	clustered bool // some requests are in no namespace
	comes     []string
}{
	{name: "AlwaysPullImages", random: podRequest, comes: []string{"mutated", "validating allowed", "validating denied 500"}},
	{name: "CertificateSubjectRestriction", random: certificate, clustered: true, comes: []string{"validating allowed", "validating denied 403"}},
	{name: "DefaultIngressClass", random: ingress, comes: []string{"mutated", "mutating allowed"}},
	{name: "DefaultStorageClass", random: claim, comes: []string{"mutated", "mutating allowed"}},
	{name: "DefaultTolerationSeconds", random: podRequest, comes: []string{"mutated", "mutating allowed"}},
	{name: "DenyServiceExternalIPs", random: service, comes: []string{"validating allowed", "validating denied 403"}},
	{name: "ExtendedResourceToleration", random: podRequest, comes: []string{"mutated", "mutating allowed"}},
	{name: "LimitPodHardAntiAffinityTopology", random: podRequest, comes: []string{"validating allowed", "validating denied 403"}},
	{name: "LimitRanger", random: limited, comes: []string{"mutated", "mutating allowed", "validating allowed", "validating denied 403"}},
	{name: "PersistentVolumeClaimResize", random: claim, comes: []string{"validating allowed", "validating denied 403"}},
	{name: "PodNodeSelector", random: nodeSelected, comes: []string{"mutated", "mutating allowed", "mutating denied 403", "mutating denied 500", "validating allowed", "validating denied 403", "validating denied 500"}},
	{name: "PodTolerationRestriction", random: tolerating, comes: []string{"mutated", "mutating allowed", "mutating denied 404", "mutating denied 500", "validating allowed", "validating denied 404", "validating denied 500"}},
	{name: "Priority", random: prioritized, comes: []string{"mutated", "mutating allowed", "mutating denied 403", "validating allowed", "validating denied 403"}},
	{name: "RuntimeClass", random: runtimeClassed, comes: []string{"mutated", "mutating allowed", "mutating denied 403", "validating allowed", "validating denied 403"}},
}

func (q *request) store(o runtime.Object, kind string) {
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	q.stored = append(q.stored, o)
}

// class is the metadata of a class that may be the default one.
func (d dice) class(name string, annotations ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name}
	if !d.one(5) {
		m.CreationTimestamp = metav1.Unix(1e9+int64(d.IntN(3)), 0)
	}
	if !d.one(3) {
		m.Annotations = map[string]string{pick(d, annotations...): pick(d, "true", "true", "false", "", "True")}
	}
	return m
}

func (q *request) storageClasses(d dice) {
	for _, name := range []string{"gold", "silver", "bronze"} {
		if d.one(4) {
			continue
		}
		q.store(&storagev1.StorageClass{
			ObjectMeta:           d.class(name, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
			AllowVolumeExpansion: maybe(d, true, true, false),
		}, "StorageClass")
	}
}

func claim(d dice) *request {
	q := &request{
		operation: pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Update, admissionv1.Update, admissionv1.Delete), resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
		kind: "PersistentVolumeClaim", subresource: pick(d, "", "", "", "", "", "status"), name: pick(d, "", "data"),
	}
	draw := func() *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: d.metadata()}
		if d.one(4) {
			c.Annotations = map[string]string{pick(d, "a", corev1.BetaStorageClassAnnotation, corev1.BetaStorageClassAnnotation): pick(d, "", "gold", "silver", "unknown")}
		}
		c.Spec.StorageClassName = maybe(d, "", "gold", "gold", "gold", "silver", "unknown")
		if q.operation == admissionv1.Create && d.one(2) {
			c.Annotations, c.Spec.StorageClassName = nil, nil
		}
		c.Spec.Resources.Requests = corev1.ResourceList{}
		if !d.one(6) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(pick(d, "1Gi", "1024Mi", "2Gi", "500Mi", "3G", "10E"))
		}
		c.Status.Phase = pick(d, corev1.ClaimBound, corev1.ClaimBound, corev1.ClaimPending, "")
		return c
	}
	if q.operation != admissionv1.Delete {
		q.object = draw()
	}
	if q.operation != admissionv1.Create {
		q.old = draw()
	}
	q.storageClasses(d)
	return q
}

func ingress(d dice) *request {
	q := &request{
		operation: pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Create, admissionv1.Update), resource: networkingv1.SchemeGroupVersion.WithResource("ingresses"),
		kind: "Ingress", subresource: pick(d, "", "", "", "", "", "status"), name: "web",
	}
	i := &networkingv1.Ingress{ObjectMeta: d.metadata(), Spec: networkingv1.IngressSpec{IngressClassName: maybe(d, "", "nginx", "unknown")}}
	if d.one(4) {
		i.Annotations = map[string]string{pick(d, "a", "kubernetes.io/ingress.class"): pick(d, "", "nginx")}
	}
	q.object = i
	if q.operation == admissionv1.Update {
		q.old = i
	}
	for _, name := range []string{"nginx", "envoy", "traefik"} {
		if !d.one(4) {
			q.store(&networkingv1.IngressClass{ObjectMeta: d.class(name, networkingv1.AnnotationIsDefaultIngressClass)}, "IngressClass")
		}
	}
	return q
}

func service(d dice) *request {
	q := &request{
		operation: pick(d, admissionv1.Create, admissionv1.Update, admissionv1.Update), resource: corev1.SchemeGroupVersion.WithResource("services"),
		kind: "Service", subresource: pick(d, "", "", "", "", "", "status"), name: "web",
	}
	draw := func() *corev1.Service {
		return &corev1.Service{ObjectMeta: d.metadata(), Spec: corev1.ServiceSpec{ExternalIPs: some(d, 4, func() string { return pick(d, "1.1.1.1", "2.2.2.2", "3.3.3.3") })}}
	}
	q.object = draw()
	if q.operation == admissionv1.Update {
		q.old = draw()
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

func certificate(d dice) *request {
	q := &request{
		operation: pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Update), resource: certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"),
		kind: "CertificateSigningRequest", subresource: pick(d, "", "", "", "", "approval"), name: pick(d, "", "ann"),
	}
	object := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "ann"}}
	object.Spec.SignerName = pick(d, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeletServingSignerName, "")
	object.Spec.Request = pick(d, signed()...)
	q.object = object
	if q.operation == admissionv1.Update {
		q.old = object
	}
	return q
}
