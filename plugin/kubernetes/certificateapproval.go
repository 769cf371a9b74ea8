// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// CertificateApproval denies the approval of a request for a certificate to those who have
// no right to approve for its signer.
func CertificateApproval() plugin.Plugin {
	p := unconfigured("CertificateApproval", certificateApproval{},
		plugin.Rule("certificates.k8s.io", "v1", []string{"certificatesigningrequests/approval"}, "UPDATE"))
	p.Authorizes = true
	return p
}

type certificateApproval struct{}

func (certificateApproval) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if !isUpdateOfRequest(a, "approval") {
		return plugin.Answer{}, nil
	}
	// The stored request counts: whoever approves may try to change the signer to one of
	// theirs.
	old, err := plugin.Decode[certificatesv1.CertificateSigningRequest](a.OldObject())
	if err != nil {
		return plugin.Answer{}, err
	}
	if old == nil {
		return plugin.Answer{}, missing("CertificateSigningRequest")
	}
	allowed, err := mayUseSigner(a, "approve", old.Spec.SignerName)
	if allowed || err != nil {
		return plugin.Answer{}, err
	}
	return a.Forbid("user not permitted to approve requests with signerName %q", old.Spec.SignerName), nil
}

// isUpdateOfRequest reports whether a subresource of a request for a certificate is updated.
func isUpdateOfRequest(a *plugin.Attributes, subresource string) bool {
	r := a.Resource()
	return r.Group == "certificates.k8s.io" && r.Resource == "certificatesigningrequests" && a.Subresource() == subresource && a.Operation() == admissionv1.Update
}
