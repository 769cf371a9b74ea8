// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
)

// The most path secrets and source ranges of a Cluster. Two secrets are the one in use and
// the next.
const (
	maxPathSecrets  = 2
	maxSourceRanges = 64
)

// credentialsOf returns what the kube-apiserver of a cluster can present. Sums that are
// none are left out: they are problems.
func credentialsOf(a *v1alpha1.Authentication) chain.Credentials {
	c := chain.Credentials{Certificate: a.Certificate != nil, Token: len(a.BearerTokenSHA256) > 0}
	for _, sum := range a.PathSecretSHA256 {
		if isSHA256(sum) {
			c.PathSecrets = append(c.PathSecrets, sumOf(sum))
		}
	}
	return c
}

// validatePathSecrets never shows what is no sum: it may be the secret itself.
func validatePathSecrets(sums []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(sums) > maxPathSecrets {
		errs = append(errs, field.TooMany(at, len(sums), maxPathSecrets))
	}
	for i, sum := range sums {
		if !isSHA256(sum) {
			errs = append(errs, field.Invalid(at.Index(i), "", "must be 64 hexadecimal digits: the SHA-256 of the secret, never the secret"))
		}
	}
	return errs
}

func validateSourceRanges(cidrs []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(cidrs) > maxSourceRanges {
		errs = append(errs, field.TooMany(at, len(cidrs), maxSourceRanges))
	}
	for i, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		switch {
		case err != nil || prefix.Addr().Is4In6():
			errs = append(errs, field.Invalid(at.Index(i), cidr, "must be a CIDR such as 10.0.0.0/8 or fd00::/8"))
		case prefix.Masked() != prefix:
			errs = append(errs, field.Invalid(at.Index(i), cidr, fmt.Sprintf("has bits set behind the prefix: %s is the range, %s/%d the address alone",
				prefix.Masked(), prefix.Addr(), prefix.Addr().BitLen())))
		}
	}
	return errs
}

// sourceRanges parses CIDRs. Those that are none are problems of the configuration, which
// is not served then.
func sourceRanges(cidrs []string) []netip.Prefix {
	var ranges []netip.Prefix
	for _, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			ranges = append(ranges, prefix)
		}
	}
	return ranges
}
