// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// CertificateSubjectRestriction denies requests for certificates that the API server takes
// for clients of the group system:masters, who may do everything.
func CertificateSubjectRestriction() plugin.Plugin {
	return unconfigured("CertificateSubjectRestriction", certificateSubject{},
		plugin.Rule("certificates.k8s.io", "v1", []string{"certificatesigningrequests"}, "CREATE"))
}

type certificateSubject struct{}

// almighty is the group that authorization does not look at.
const almighty = "system:masters"

func (certificateSubject) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if !a.Is("certificates.k8s.io", "certificatesigningrequests") || a.Operation() != admissionv1.Create {
		return plugin.Answer{}, nil
	}
	request, err := plugin.Decode[certificatesv1.CertificateSigningRequest](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if request == nil {
		return plugin.Answer{}, missing("CertificateSigningRequest")
	}
	if request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return plugin.Answer{}, nil
	}
	parsed, err := parseRequest(request.Spec.Request)
	if err != nil {
		return a.Forbid("failed to parse CSR: %w", err), nil
	}
	if slices.Contains(parsed.Subject.Organization, almighty) {
		return a.Forbid("use of %s signer with %s group is not allowed", certificatesv1.KubeAPIServerClientSignerName, almighty), nil
	}
	return plugin.Answer{}, nil
}

var errNoRequest = errors.New("PEM block type must be CERTIFICATE REQUEST")

func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errNoRequest
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
