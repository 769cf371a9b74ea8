// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// CertificateSigning denies certificates, and conditions of requests for them, to those who
// have no right to sign for the signer.
func CertificateSigning() plugin.Plugin {
	p := unconfigured("CertificateSigning", certificateSigning{},
		plugin.Rule("certificates.k8s.io", "v1", []string{"certificatesigningrequests/status"}, "UPDATE"))
	p.Authorizes = true
	return p
}

type certificateSigning struct{}

func (certificateSigning) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if !isUpdateOfRequest(a, "status") {
		return plugin.Answer{}, nil
	}
	old, err := plugin.Decode[certificatesv1.CertificateSigningRequest](a.OldObject())
	if err != nil {
		return plugin.Answer{}, err
	}
	request, err := plugin.Decode[certificatesv1.CertificateSigningRequest](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if old == nil || request == nil {
		return plugin.Answer{}, missing("CertificateSigningRequest")
	}
	if bytes.Equal(old.Status.Certificate, request.Status.Certificate) &&
		apiequality.Semantic.DeepEqual(old.Status.Conditions, request.Status.Conditions) {
		return plugin.Answer{}, nil
	}
	allowed, err := mayUseSigner(a, "sign", old.Spec.SignerName)
	if allowed || err != nil {
		return plugin.Answer{}, err
	}
	return a.Forbid("user not permitted to sign requests with signerName %q", old.Spec.SignerName), nil
}
