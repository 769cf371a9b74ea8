// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// resourceOf returns what a valid paramKind stands for: a kind of Kubernetes, or one that a
// CustomResourceDefinition in a source defines. Clusters are not asked: they may differ.
func resourceOf(kind *admissionregistrationv1.ParamKind, custom []manifest.CustomResource) (policy.ParamResource, error) {
	of := policy.ParamResource{Kind: *kind}
	gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	builtIn := kindsOf[gvk.Group]
	namespaced := slices.Contains(strings.Fields(builtIn.namespaced), gvk.Kind)
	if namespaced || slices.Contains(strings.Fields(builtIn.cluster), gvk.Kind) {
		of.Resource, _ = meta.UnsafeGuessKindToResource(gvk) // which is right for all of these
		of.Namespaced = namespaced
		return of, nil
	}
	for i := range custom {
		c := &custom[i]
		if c.Group != gvk.Group || c.Kind != gvk.Kind {
			continue
		}
		if !c.Has(gvk.Version) {
			return of, fmt.Errorf("%s in %s has no version %s", c.Object, c.File, gvk.Version)
		}
		of.Resource, of.Namespaced = gvk.GroupVersion().WithResource(c.Plural), c.Namespaced
		return of, nil
	}
	return of, errors.New("is no kind of Kubernetes, and no CustomResourceDefinition in a source says its scope and its resource: put that beside the policy")
}

// kindsOf are the kinds of Kubernetes that a cluster stores, by group.
var kindsOf = map[string]struct{ namespaced, cluster string }{
	"": {
		"ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
		"Namespace Node PersistentVolume",
	},
	"admissionregistration.k8s.io": {"", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration " +
		"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
	"apiextensions.k8s.io":         {"", "CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"", "APIService"},
	"apps":                         {"ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""},
	"autoscaling":                  {"HorizontalPodAutoscaler", ""},
	"batch":                        {"CronJob Job", ""},
	"certificates.k8s.io":          {"PodCertificateRequest", "CertificateSigningRequest ClusterTrustBundle"},
	"coordination.k8s.io":          {"Lease LeaseCandidate", ""},
	"discovery.k8s.io":             {"EndpointSlice", ""},
	"events.k8s.io":                {"Event", ""},
	"flowcontrol.apiserver.k8s.io": {"", "FlowSchema PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"", "StorageVersion"},
	"lifecycle.k8s.io":             {"Eviction EvictionRequest", ""},
	"networking.k8s.io":            {"Ingress NetworkPolicy", "IPAddress IngressClass ServiceCIDR"},
	"node.k8s.io":                  {"", "RuntimeClass"},
	"policy":                       {"PodDisruptionBudget", ""},
	"rbac.authorization.k8s.io":    {"Role RoleBinding", "ClusterRole ClusterRoleBinding"},
	"resource.k8s.io":              {"ResourceClaim ResourceClaimTemplate", "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice"},
	"scheduling.k8s.io":            {"CompositePodGroup PodGroup Workload", "PriorityClass"},
	"storage.k8s.io":               {"CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"", "StorageVersionMigration"},
}
