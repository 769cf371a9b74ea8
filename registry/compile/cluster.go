// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// compileClusters compiles every cluster that is valid on its own, and the
// index of their credentials.
func (c *compiler) compileClusters() {
	c.ids = newIdentities()
	for i := range c.objects.Clusters {
		m := &c.objects.Clusters[i]
		before := len(c.problems)
		c.problem(m.Problems(validateCluster(&m.ClusterObject))...)
		cluster := &chain.Cluster{
			Name:         m.Name,
			Labels:       m.Labels,
			Anonymous:    m.Spec.Authentication.Anonymous,
			RequestBytes: m.Spec.Limits.RequestBytes,
			Bypass:       compileRules(c.Bypass, &m.Spec.Bypass),
			FailOpen:     compileRules(c.FailOpen, &m.Spec.FailOpen),
			Namespaces:   c.compileNamespaceSource(m),
		}
		cluster.Declared, _ = chain.ParseKubernetesVersion(m.Spec.KubernetesVersion) // validated above; none is unknown
		if s := m.Spec.TimeoutSeconds; s != nil {
			cluster.Timeout = time.Duration(*s) * time.Second
		}
		c.claimIdentities(m, cluster)
		if len(c.problems) == before {
			c.clusters = append(c.clusters, cluster)
		}
	}
	c.ids.index()
}

// compileRules puts the process's rules and the cluster's own together.
func compileRules(inherited []exempt.Rule, list *manifest.RequestRuleList) exempt.Rules {
	if list.Inherit != nil && !*list.Inherit {
		inherited = nil
	}
	return exempt.Compile(slices.Concat(inherited, list.Rules))
}

func validateCluster(c *manifest.ClusterObject) field.ErrorList {
	errs := validation.ValidateObjectMeta(&c.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	errs = append(errs, validateAuthentication(&c.Spec.Authentication, spec.Child("authentication"))...)
	errs = append(errs, validateTimeout(c.Spec.TimeoutSeconds, spec.Child("timeoutSeconds"))...)
	if v := c.Spec.KubernetesVersion; v != "" {
		if _, err := chain.ParseKubernetesVersion(v); err != nil {
			errs = append(errs, field.Invalid(spec.Child("kubernetesVersion"), v, err.Error()))
		}
	}
	errs = append(errs, validateNamespaces(c.Spec.Namespaces, spec.Child("namespaces"))...)
	if c.Spec.Namespaces != nil && c.Spec.KubeconfigFile != "" {
		errs = append(errs, field.Forbidden(spec.Child("kubeconfigFile"), "not together with spec.namespaces: the labels have one source"))
	}
	errs = append(errs, exempt.Validate(c.Spec.Bypass.Rules, spec.Child("bypass", "rules"), false)...)
	errs = append(errs, exempt.Validate(c.Spec.FailOpen.Rules, spec.Child("failOpen", "rules"), true)...)
	if n := c.Spec.Limits.RequestBytes; n < 0 {
		errs = append(errs, field.Invalid(spec.Child("limits", "requestBytes"), n, "must not be negative"))
	}
	return errs
}

func validateAuthentication(a *manifest.Authentication, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a.Certificate == nil && len(a.BearerTokenSHA256) == 0 && !a.Anonymous {
		errs = append(errs, field.Required(at, "at least one of certificate, bearerTokenSHA256 or anonymous"))
	}
	for i, sum := range a.BearerTokenSHA256 {
		if !isSHA256(sum) {
			// Not the value: it may be the token itself.
			errs = append(errs, field.Invalid(at.Child("bearerTokenSHA256").Index(i), "",
				"must be 64 hexadecimal digits: the SHA-256 of the token, never the token"))
		}
	}
	if a.Certificate != nil {
		errs = append(errs, validateCertificateIdentity(a.Certificate, at.Child("certificate"))...)
	}
	return errs
}

func isSHA256(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == sha256.Size
}

func validateCertificateIdentity(c *manifest.CertificateIdentity, at *field.Path) field.ErrorList {
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
