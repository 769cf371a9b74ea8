// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"maps"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// ClusterTrustBundleAttest denies bundles of trust anchors for a signer to those who have no
// right to attest for it.
func ClusterTrustBundleAttest() plugin.Plugin {
	rule := plugin.Rule("certificates.k8s.io", "v1", []string{"clustertrustbundles"}, admissionregistrationv1.Create, admissionregistrationv1.Update)
	// Which of them a cluster serves depends on its version, and rules of one that it does
	// not serve select nothing there.
	rule.APIVersions = []string{"v1", "v1beta1", "v1alpha1"}
	p := unconfigured("ClusterTrustBundleAttest", trustBundle{}, rule)
	p.Authorizes = true
	return p
}

type trustBundle struct{}

func (trustBundle) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if o := a.Operation(); !a.Is("certificates.k8s.io", "clustertrustbundles") || o != admissionv1.Create && o != admissionv1.Update {
		return plugin.Answer{}, nil
	}
	// All versions have the signer in the same place. Unlike that of a request for a
	// certificate it cannot be changed.
	bundle, err := plugin.Decode[certificatesv1.ClusterTrustBundle](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if bundle == nil {
		return plugin.Answer{}, missing("ClusterTrustBundle")
	}
	if bundle.Spec.SignerName == "" {
		return plugin.Answer{}, nil
	}
	if a.Operation() == admissionv1.Update {
		if kept, err := changesNothing(a); kept || err != nil {
			return plugin.Answer{}, err
		}
	}
	allowed, err := mayUseSigner(a, "attest", bundle.Spec.SignerName)
	if allowed || err != nil {
		return plugin.Answer{}, err
	}
	return a.Forbid("user not permitted to attest for signerName %q", bundle.Spec.SignerName), nil
}

// changesNothing reports whether an update changes nothing but what the garbage collector
// and the API server themselves write: migrations of storage must not need rights.
func changesNothing(a *plugin.Attributes) (bool, error) {
	now, err := a.Object().Unstructured()
	if err != nil {
		return false, err
	}
	before, err := a.OldObject().Unstructured()
	if err != nil || before == nil {
		return false, err
	}
	return reflect.DeepEqual(withoutOwners(now.Object), withoutOwners(before.Object)), nil
}

// withoutOwners is an object without the metadata of the garbage collector.
func withoutOwners(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	for _, name := range []string{"ownerReferences", "finalizers", "selfLink", "managedFields"} {
		delete(metadata, name)
	}
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}
