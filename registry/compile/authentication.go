// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// credential is how one API server of a cluster proves who it is.
type credential struct {
	at          *field.Path // of what has the fields
	certificate *v1alpha1.CertificateIdentity
	tokens      []string // SHA-256
	jwt         *v1alpha1.JWT
}

func ownCredential(a *v1alpha1.Authentication, at *field.Path) credential {
	return credential{at, a.Certificate, a.BearerTokenSHA256, a.JWT}
}

func callersCredential(c *v1alpha1.Caller, at *field.Path) credential {
	return credential{at, c.Certificate, c.BearerTokenSHA256, c.JWT}
}

// identify enters the credentials of the cluster's API servers.
func (c *clusters) identify(m *manifest.Cluster) {
	a, at := &m.Spec.Authentication, field.NewPath("spec", "authentication")
	if c.options.CertificateRequired {
		c.problem(m.Problems(unreachable(a, at))...)
	}
	if a.Anonymous {
		c.problem(c.ids.claimAnonymous(m)...)
	}
	c.problem(c.ids.claimPathSecrets(m, a.PathSecretSHA256, at.Child("pathSecretSHA256"))...)
	c.claim(m, chain.Identity{Cluster: m.Name}, ownCredential(a, at))
	for i := range a.Callers {
		caller := &a.Callers[i]
		who := chain.Identity{Cluster: m.Name, Server: &chain.APIServer{Name: caller.Name, Groups: caller.APIGroups}}
		c.claim(m, who, callersCredential(caller, at.Child("callers").Index(i)))
	}
}

func (c *clusters) claim(m *manifest.Cluster, who chain.Identity, its credential) {
	if its.jwt != nil {
		c.claimJWT(m, who, its)
	}
	if its.certificate == nil {
		c.problem(c.ids.claim(m, who, its, nil)...)
		return
	}
	_, pins := c.readCA(m.Origin, its.certificate.CAFile, its.at.Child("certificate", "caFile"))
	c.problem(c.ids.claim(m, who, its, pins)...)
}

func validateAuthentication(a *v1alpha1.Authentication, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a.Certificate == nil && len(a.BearerTokenSHA256)+len(a.PathSecretSHA256) == 0 && a.JWT == nil && !a.Anonymous {
		errs = append(errs, field.Required(at, "at least one of certificate, bearerTokenSHA256, jwt, pathSecretSHA256 or anonymous"))
	}
	errs = append(errs, ownCredential(a, at).validate()...)
	errs = append(errs, validatePathSecrets(a.PathSecretSHA256, at.Child("pathSecretSHA256"))...)
	errs = append(errs, validateSourceRanges(a.SourceRanges, at.Child("sourceRanges"))...)
	names := map[string]bool{}
	for i := range a.Callers {
		errs = append(errs, validateCaller(&a.Callers[i], at.Child("callers").Index(i), names)...)
	}
	return errs
}

// unreachable returns the ways in that nobody can use who must have a client certificate.
// A token beside a certificate is a way in: both are presented.
func unreachable(a *v1alpha1.Authentication, at *field.Path) field.ErrorList {
	const remedy = ", and tls.clientAuth: Require lets nobody in without one: set tls.clientAuth: IfGiven"
	var errs field.ErrorList
	if a.Anonymous {
		errs = append(errs, field.Forbidden(at.Child("anonymous"), "an anonymous caller presents no client certificate"+remedy))
	}
	only := func(c credential) {
		if c.certificate == nil && len(c.tokens) > 0 {
			errs = append(errs, field.Forbidden(c.at.Child("bearerTokenSHA256"), "a token alone is no client certificate"+remedy))
		}
	}
	only(ownCredential(a, at))
	for i := range a.Callers {
		only(callersCredential(&a.Callers[i], at.Child("callers").Index(i)))
	}
	return errs
}

func validateCaller(c *v1alpha1.Caller, at *field.Path, names map[string]bool) field.ErrorList {
	var errs field.ErrorList
	for _, reason := range validation.NameIsDNSSubdomain(c.Name, false) {
		errs = append(errs, field.Invalid(at.Child("name"), c.Name, reason))
	}
	if names[c.Name] {
		errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
	}
	names[c.Name] = true
	if c.Certificate == nil && len(c.BearerTokenSHA256) == 0 && c.JWT == nil {
		errs = append(errs, field.Required(at, "at least one of certificate, bearerTokenSHA256 or jwt"))
	}
	if c.JWT != nil && len(c.JWT.Subjects) == 0 {
		errs = append(errs, field.Required(at.Child("jwt", "subjects"), "they tell the caller's tokens from the kube-apiserver's"))
	}
	errs = append(errs, callersCredential(c, at).validate()...)
	if len(c.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "the groups that this API server serves"))
	}
	for i, group := range c.APIGroups {
		// Not "": the core group is the kube-apiserver's. Not "*": whoever may send all is the kube-apiserver.
		for _, reason := range validation.NameIsDNSSubdomain(group, false) {
			errs = append(errs, field.Invalid(at.Child("apiGroups").Index(i), group, reason))
		}
	}
	return errs
}

func (c credential) validate() field.ErrorList {
	var errs field.ErrorList
	for i, sum := range c.tokens {
		if !isSHA256(sum) {
			// Not the value: it may be the token itself.
			errs = append(errs, field.Invalid(c.at.Child("bearerTokenSHA256").Index(i), "",
				"must be 64 hexadecimal digits: the SHA-256 of the token, never the token"))
		}
	}
	if c.certificate != nil {
		errs = append(errs, validateCertificateIdentity(c.certificate, c.at.Child("certificate"))...)
	}
	if c.jwt != nil {
		errs = append(errs, validateJWT(c.jwt, c.at.Child("jwt"))...)
	}
	return errs
}

func isSHA256(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == sha256.Size
}

func validateCertificateIdentity(c *v1alpha1.CertificateIdentity, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.CommonNames)+len(c.DNSNames)+len(c.URIs) == 0 {
		errs = append(errs, field.Required(at, "at least one of commonNames, dnsNames or uris"))
	}
	errs = append(errs, noneEmpty(c.CommonNames, at.Child("commonNames"))...)
	errs = append(errs, noneEmpty(c.DNSNames, at.Child("dnsNames"))...)
	for i, name := range c.DNSNames {
		if strings.Contains(name, "*") {
			errs = append(errs, field.Invalid(at.Child("dnsNames").Index(i), name, "wildcards are not permitted: a cluster has a name"))
		}
	}
	for i, raw := range c.URIs {
		if u, err := url.Parse(raw); err != nil || u.Scheme == "" || u.String() != raw {
			errs = append(errs, field.Invalid(at.Child("uris").Index(i), raw, "must be an absolute URI in canonical form"))
		}
	}
	return errs
}

func noneEmpty(values []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, v := range values {
		if v == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
		}
	}
	return errs
}
