// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"fmt"
)

// SecretKey is one value of a Secret. It is for objects in a Kubernetes API, and the
// Secret lies in the one namespace that the registry reads; a manifest in a directory
// names a file instead.
// +kubebuilder:validation:XValidation:rule="self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a Secret"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.key.matches('^[-._a-zA-Z0-9]+$')",message="key must be a key of the Secret"
type SecretKey struct {
	// Name of the Secret. Required.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key of the value. Its default is with the field that has the reference.
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// SecretName is a Secret as a whole, such as one of type kubernetes.io/tls. See SecretKey.
// +kubebuilder:validation:XValidation:rule="self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a Secret"
type SecretName struct {
	// Name of the Secret. Required.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ConfigMapKey is one value of a ConfigMap. See SecretKey.
// +kubebuilder:validation:XValidation:rule="self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a ConfigMap"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.key.matches('^[-._a-zA-Z0-9]+$')",message="key must be a key of the ConfigMap"
type ConfigMapKey struct {
	// Name of the ConfigMap. Required.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key of the value. Its default is with the field that has the reference.
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// The keys that references mean which name none.
const (
	DefaultCAKey         = "ca.crt"
	DefaultJWKSKey       = "jwks.json"
	DefaultTokenKey      = "token"
	DefaultKubeconfigKey = "kubeconfig"
	CertificateKey       = "tls.crt" // of a SecretName
	PrivateKeyKey        = "tls.key"
)

// Reference is a Secret or a ConfigMap that an object names.
type Reference struct {
	Field string // its path, such as spec.kubeconfigSecretRef
	Kind  string // Secret or ConfigMap
	Name  string
	// Key of the value.
	Key string
	// File is the field that names a file with the value where manifests lie in a
	// directory. nil: the value goes into the caBundles of the object.
	File *string
}

const (
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
)

// references collects what an object names.
type references []Reference

func (r *references) secret(at, field string, ref *SecretKey, key string, file *string) {
	if ref != nil {
		*r = append(*r, Reference{at + field, secretKind, ref.Name, cmp.Or(ref.Key, key), file})
	}
}

func (r *references) configMap(at, field string, ref *ConfigMapKey, key string, file *string) {
	if ref != nil {
		*r = append(*r, Reference{at + field, configMapKind, ref.Name, cmp.Or(ref.Key, key), file})
	}
}

func (r *references) authorities(at string, secret *SecretKey, configMap *ConfigMapKey, file *string) {
	r.secret(at, "caSecretRef", secret, DefaultCAKey, file)
	r.configMap(at, "caConfigMapRef", configMap, DefaultCAKey, file)
}

func (r *references) credential(at string, c *CertificateIdentity, j *JWT) {
	if c != nil {
		r.authorities(at+"certificate.", c.CASecretRef, c.CAConfigMapRef, &c.CAFile)
	}
	if j != nil {
		r.secret(at+"jwt.", "jwksSecretRef", j.JWKSSecretRef, DefaultJWKSKey, &j.JWKSFile)
		r.configMap(at+"jwt.", "jwksConfigMapRef", j.JWKSConfigMapRef, DefaultJWKSKey, &j.JWKSFile)
	}
}

// References returns what the Cluster names.
func (c *Cluster) References() []Reference {
	var r references
	own := &c.Spec.Authentication
	r.credential("spec.authentication.", own.Certificate, own.JWT)
	for i := range own.Callers {
		r.credential(fmt.Sprintf("spec.authentication.callers[%d].", i), own.Callers[i].Certificate, own.Callers[i].JWT)
	}
	r.secret("spec.", "kubeconfigSecretRef", c.Spec.KubeconfigSecretRef, DefaultKubeconfigKey, &c.Spec.KubeconfigFile)
	return r
}

// Dereference drops the references, when what they name is in files.
func (c *Cluster) Dereference() {
	for _, a := range c.Spec.Authentication.certificates() {
		a.CASecretRef, a.CAConfigMapRef = nil, nil
	}
	for _, j := range c.Spec.Authentication.jwts() {
		j.JWKSSecretRef, j.JWKSConfigMapRef = nil, nil
	}
	c.Spec.KubeconfigSecretRef = nil
}

// Files returns the names of files that the Cluster names, the kubeconfig apart; ""
// names none.
func (s *ClusterSpec) Files() []string {
	var files []string
	for _, c := range s.Authentication.certificates() {
		files = append(files, c.CAFile)
	}
	for _, j := range s.Authentication.jwts() {
		files = append(files, j.JWKSFile)
	}
	return files
}

// jwts returns those of the cluster and of its callers.
func (a *Authentication) jwts() (list []*JWT) {
	if a.JWT != nil {
		list = append(list, a.JWT)
	}
	for i := range a.Callers {
		if j := a.Callers[i].JWT; j != nil {
			list = append(list, j)
		}
	}
	return list
}

// certificates returns those of the cluster and of its callers.
func (a *Authentication) certificates() (list []*CertificateIdentity) {
	if a.Certificate != nil {
		list = append(list, a.Certificate)
	}
	for i := range a.Callers {
		if c := a.Callers[i].Certificate; c != nil {
			list = append(list, c)
		}
	}
	return list
}

// References returns what the WebhookBinding names.
func (b *WebhookBinding) References() []Reference {
	var r references
	r.authorities("spec.", b.Spec.CASecretRef, b.Spec.CAConfigMapRef, &b.Spec.CAFile)
	for i := range b.Spec.Endpoints {
		e := &b.Spec.Endpoints[i]
		r.authorities(fmt.Sprintf("spec.endpoints[%d].", i), e.CASecretRef, e.CAConfigMapRef, &e.CAFile)
	}
	if c := b.Spec.ClientCertificate; c != nil && c.SecretRef != nil {
		const at = "spec.clientCertificate.secretRef"
		r = append(r, Reference{at, secretKind, c.SecretRef.Name, CertificateKey, &c.CertFile},
			Reference{at, secretKind, c.SecretRef.Name, PrivateKeyKey, &c.KeyFile})
	}
	r.secret("spec.", "bearerTokenSecretRef", b.Spec.BearerTokenSecretRef, DefaultTokenKey, &b.Spec.BearerTokenFile)
	return r
}

// Dereference drops the references, when what they name is in files.
func (b *WebhookBinding) Dereference() {
	b.Spec.CASecretRef, b.Spec.CAConfigMapRef = nil, nil
	for i := range b.Spec.Endpoints {
		b.Spec.Endpoints[i].CASecretRef, b.Spec.Endpoints[i].CAConfigMapRef = nil, nil
	}
	if c := b.Spec.ClientCertificate; c != nil {
		c.SecretRef = nil
	}
	b.Spec.BearerTokenSecretRef = nil
}

// Files returns the names of files that the WebhookBinding names; "" names none.
func (s *WebhookBindingSpec) Files() []string {
	names := []string{s.BearerTokenFile, s.CAFile}
	for _, e := range s.Endpoints {
		names = append(names, e.CAFile)
	}
	if c := s.ClientCertificate; c != nil {
		names = append(names, c.CertFile, c.KeyFile)
	}
	return names
}

// References returns what the WebhookConfiguration names.
func (c *WebhookConfiguration) References() []Reference {
	var r references
	r.authorities("spec.", c.Spec.CASecretRef, c.Spec.CAConfigMapRef, nil)
	return r
}

// Dereference drops the references, when what they name is in the caBundles.
func (c *WebhookConfiguration) Dereference() { c.Spec.CASecretRef, c.Spec.CAConfigMapRef = nil, nil }
