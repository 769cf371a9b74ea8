// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// builtin are the kinds of Kubernetes that are stored, by their groups: those in namespaces,
// and those in none. Their resources are called as client-go would guess.
var builtin = map[string][2][]string{
	"": {
		{"ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount"},
		{"Namespace", "Node", "PersistentVolume"},
	},
	"admissionregistration.k8s.io": {nil, {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	}},
	"apiextensions.k8s.io":         {nil, {"CustomResourceDefinition"}},
	"apiregistration.k8s.io":       {nil, {"APIService"}},
	"apps":                         {{"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}, nil},
	"autoscaling":                  {{"HorizontalPodAutoscaler"}, nil},
	"batch":                        {{"CronJob", "Job"}, nil},
	"certificates.k8s.io":          {{"PodCertificateRequest"}, {"CertificateSigningRequest", "ClusterTrustBundle"}},
	"coordination.k8s.io":          {{"Lease", "LeaseCandidate"}, nil},
	"discovery.k8s.io":             {{"EndpointSlice"}, nil},
	"events.k8s.io":                {{"Event"}, nil},
	"flowcontrol.apiserver.k8s.io": {nil, {"FlowSchema", "PriorityLevelConfiguration"}},
	"internal.apiserver.k8s.io":    {nil, {"StorageVersion"}},
	"networking.k8s.io":            {{"Ingress", "NetworkPolicy"}, {"IPAddress", "IngressClass", "ServiceCIDR"}},
	"node.k8s.io":                  {nil, {"RuntimeClass"}},
	"policy":                       {{"PodDisruptionBudget"}, nil},
	"rbac.authorization.k8s.io":    {{"Role", "RoleBinding"}, {"ClusterRole", "ClusterRoleBinding"}},
	"resource.k8s.io":              {{"ResourceClaim", "ResourceClaimTemplate"}, {"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"}},
	"scheduling.k8s.io":            {{"PodGroup", "Workload"}, {"PriorityClass"}},
	"storage.k8s.io":               {{"CSIStorageCapacity"}, {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}},
	"storagemigration.k8s.io":      {nil, {"StorageVersionMigration"}},
}

// ownerConfiguration is the configuration of OwnerReferencesPermissionEnforcement. An API
// server asks its discovery what the resource of a kind is called; here custom kinds are
// listed.
type ownerConfiguration struct {
	Kinds []ownerKind `json:"kinds,omitempty"`
}

// ownerKind is a custom kind, in the words of its CustomResourceDefinition. Scope is
// Namespaced or Cluster.
type ownerKind struct {
	Group  string `json:"group"`
	Kind   string `json:"kind"`
	Plural string `json:"plural"`
	Scope  string `json:"scope"`
}

// ownerKinds are the resources of kinds.
type ownerKinds map[schema.GroupKind]ownerResource

type ownerResource struct {
	schema.GroupVersionResource

	namespaced bool
}

// The scopes of a CustomResourceDefinition.
const (
	scopeNamespaced = "Namespaced"
	scopeCluster    = "Cluster"
)

// kinds returns all kinds, or what is wrong with those that are configured.
func (c *ownerConfiguration) kinds() (ownerKinds, field.ErrorList) {
	kinds := ownerKinds{}
	for group, scopes := range builtin {
		for i, list := range scopes {
			for _, kind := range list {
				resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind})
				kinds[schema.GroupKind{Group: group, Kind: kind}] = ownerResource{resource, i == 0}
			}
		}
	}
	var errs field.ErrorList
	for i, k := range c.Kinds {
		at := field.NewPath("kinds").Index(i)
		for _, required := range [][2]string{{"group", k.Group}, {"kind", k.Kind}, {"plural", k.Plural}} {
			if required[1] == "" {
				errs = append(errs, field.Required(at.Child(required[0]), ""))
			}
		}
		if scopes := []string{scopeCluster, scopeNamespaced}; !slices.Contains(scopes, k.Scope) {
			errs = append(errs, field.NotSupported(at.Child("scope"), k.Scope, scopes))
		}
		of := schema.GroupKind{Group: k.Group, Kind: k.Kind}
		if _, known := kinds[of]; known {
			errs = append(errs, field.Duplicate(at, of.String()))
		}
		kinds[of] = ownerResource{schema.GroupVersionResource{Group: k.Group, Resource: k.Plural}, k.Scope == scopeNamespaced}
	}
	return kinds, errs
}

// resource returns the resource of the owner that a reference names, in the words of an
// API server where it is not known.
func (k ownerKinds) resource(ref *metav1.OwnerReference) (ownerResource, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ownerResource{}, err
	}
	of := schema.GroupKind{Group: gv.Group, Kind: ref.Kind}
	known, ok := k[of]
	if !ok {
		return ownerResource{}, &meta.NoKindMatchError{GroupKind: of, SearchedVersions: []string{gv.Version}}
	}
	known.Version = gv.Version
	return known, nil
}
