// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// KubernetesVersion is the minor version of a cluster's API servers. The zero value
// is a version that nobody knows.
type KubernetesVersion struct{ Major, Minor int }

// KubernetesVersioner is a source of namespaces that knows the cluster's version:
// the lowest one among its API servers, as far as it can tell. It may change.
type KubernetesVersioner interface {
	KubernetesVersion() KubernetesVersion
}

// versionForm is 1.36, v1.36.3 or v1.36.3-eks-1.
var versionForm = regexp.MustCompile(`^v?([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})(\.[0-9]+([-+][0-9A-Za-z.+-]*)?)?$`)

// ParseKubernetesVersion reads a version such as 1.36 or v1.36.3.
func ParseKubernetesVersion(text string) (KubernetesVersion, error) {
	parts := versionForm.FindStringSubmatch(text)
	if parts == nil {
		return KubernetesVersion{}, errors.New("must be a version of Kubernetes such as 1.36 or v1.36.3")
	}
	var v KubernetesVersion
	v.Major, _ = strconv.Atoi(parts[1]) // digits, as the form says
	v.Minor, _ = strconv.Atoi(parts[2])
	return v, nil
}

// String returns the version as major.minor; "" if it is not known.
func (v KubernetesVersion) String() string {
	if v == (KubernetesVersion{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// Before reports whether v is the lower one.
func (v KubernetesVersion) Before(other KubernetesVersion) bool {
	return v.Major < other.Major || v.Major == other.Major && v.Minor < other.Minor
}

// exemptsAuthReviews is the first version that sends no auth review to webhooks.
var exemptsAuthReviews = KubernetesVersion{1, 37}

// KubernetesVersion returns the version that the Cluster says, or else that its API
// has said; zero if neither is known.
func (c *Cluster) KubernetesVersion() KubernetesVersion {
	if c.Declared != (KubernetesVersion{}) {
		return c.Declared
	}
	if source, ok := c.Namespaces.(KubernetesVersioner); ok {
		return source.KubernetesVersion()
	}
	return KubernetesVersion{}
}

// ExemptsAuthReviews reports whether the cluster's API servers send no review of
// authentication or authorization to webhooks, so that none is called here either.
func (c *Cluster) ExemptsAuthReviews() bool {
	return !c.KubernetesVersion().Before(exemptsAuthReviews)
}
