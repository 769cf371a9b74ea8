// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// elsewhere says of plugins of kube-apiserver and of OpenShift why none of them is compiled
// in, though an API server may have them.
var elsewhere = map[string]string{
	"MutatingAdmissionWebhook":     beWebhook("MutatingWebhookConfiguration"),
	"ValidatingAdmissionWebhook":   beWebhook("ValidatingWebhookConfiguration"),
	"MutatingAdmissionPolicy":      bePolicy,
	"ValidatingAdmissionPolicy":    bePolicy,
	"NamespaceAutoProvision":       stays + "it writes namespaces",
	"NamespaceExists":              stays + "it must be exact about namespaces",
	"NamespaceLifecycle":           stays + "it must be exact about the deletion of namespaces",
	"NodeRestriction":              stays + "it needs the graph of the Node authorizer",
	"ResourceQuota":                stays + "it updates the quota's status with the object's creation",
	"ServiceAccount":               stays + "every cluster needs it, also while no dispatcher answers",
	"StorageObjectInUseProtection": stays + "it must hold while no dispatcher answers",
	"TaintNodesByCondition":        stays + "it must hold while no dispatcher answers",
	"JobValidation":                stays + byGates,
	"NodeDeclaredFeatureValidator": stays + byGates,
	"PodGroupProtection":           stays + byGates,
	"PodGroupWorkloadExists":       stays + byGates,
	"PodResizeValidator":           stays + byGates,
	"PodTopologyLabels":            stays + byGates,
	"ImagePolicyWebhook":           stays + "it asks a backend of its own by ImageReviews. To use the backend here, put a webhook for pods in front of it",

	"BuildByStrategy":              stays + byOpenShift,
	"ClusterResourceQuota":         stays + byOpenShift,
	"ImageLimitRange":              stays + byOpenShift,
	"ImagePolicy":                  stays + byOpenShift,
	"JenkinsBootstrapper":          stays + "it writes objects of its own",
	"OriginNamespaceLifecycle":     stays + "it must be exact about the deletion of namespaces",
	"OriginPodNodeEnvironment":     stays + "it reads projects of OpenShift. Use PodNodeSelector for any other cluster",
	"OriginResourceQuota":          stays + "it updates the quota's status with the object's creation",
	"ProjectRequestLimit":          stays + byOpenShift,
	"RestrictedEndpointsAdmission": stays + "it reads the networks of OpenShift's configuration",
	"SCCExecRestrictions":          stays + byOpenShift + ". Use PodSecurity for any other cluster",
	"SecurityContextConstraint":    stays + byOpenShift + ". Use PodSecurity for any other cluster",
}

// gone says of plugins that no API server has any more what to use in their place. They are
// refused: who lists one relies on what it does.
var gone = map[string]string{
	"DenyEscalatingExec":    "is gone from kube-apiserver since 1.21: use the policy examples/policies/deny-exec.yaml",
	"DenyExecOnPrivileged":  "is gone from kube-apiserver since 1.21: use the policy examples/policies/deny-exec.yaml",
	"InitialResources":      "is gone from kube-apiserver: use LimitRanger, or a VerticalPodAutoscaler",
	"PersistentVolumeLabel": "is gone from kube-apiserver: use the webhook kubernetes-sigs/cloud-pv-admission-labeler",
	"PodPreset":             "is gone from kube-apiserver since 1.20: use a MutatingAdmissionPolicy",
	"PodSecurityPolicy":     "is gone from kube-apiserver since 1.25: use PodSecurity",
}

const (
	stays       = "has no effect here and stays in the API server: "
	byGates     = "it follows the API server's feature gates"
	byOpenShift = "it is about resources that OpenShift has and Kubernetes has not"
	bePolicy    = "has no effect here: policies take part as objects of that kind"
)

func beWebhook(kind string) string {
	return "has no effect here: it is what the dispatcher is. Webhooks take part as objects of kind " + kind +
		", and instead of a kubeConfigFile a WebhookBinding has their bearerTokenFile or clientCertificate"
}

// listedPlugins returns the plugins that AdmissionConfigurations list, as the objects that
// they stand for.
func listedPlugins(in *manifest.Input, known plugin.Set, d *diagnostics) (list []manifest.Plugin) {
	on := map[string]manifest.Origin{} // which plugins are on, and which names are taken
	for i := range in.Objects.Plugins {
		p := &in.Objects.Plugins[i]
		on[strings.ToLower(p.Spec.Plugin)], on[p.Name] = p.Origin, p.Origin
	}
	for i := range in.Objects.Admission {
		c := &in.Objects.Admission[i]
		for j := range c.Plugins {
			entry, at := &c.Plugins[j], c.Entry(j)
			_, compiledIn := known[entry.Name]
			short := withoutGroup(entry.Name)
			why := elsewhere[short]
			switch {
			case entry.Name == "":
				d.problem(c.Problems(field.ErrorList{field.Required(at.Child("name"), "the name of a plugin that is compiled in")})...)
				continue
			case !compiledIn && why != "":
				d.warn(c.Problem(at.Child("name"), entry.Name, why))
				continue
			case !compiledIn:
				d.problem(c.Problem(at.Child("name"), entry.Name, cmp.Or(gone[short], notCompiledIn(known))))
				continue
			}
			p, ok := listedPlugin(in, c, j, d)
			if other, twice := on[p.Name]; twice {
				d.problem(c.Problem(at.Child("name"), entry.Name, fmt.Sprintf("is turned on by %s in %s too: keep one of them", other.Object, other.File)))
				continue
			}
			on[p.Name] = c.Origin
			if ok {
				list = append(list, p)
			}
		}
	}
	return list
}

// withoutGroup returns the name of a plugin without the group that OpenShift puts before it,
// such as security.openshift.io/.
func withoutGroup(name string) string {
	if group, short, ok := strings.Cut(name, "/"); ok && (group == "openshift.io" || strings.HasSuffix(group, ".openshift.io")) {
		return short
	}
	return name
}

// listedPlugin returns the plugin at position i with its configuration, if that can be read.
func listedPlugin(in *manifest.Input, c *manifest.AdmissionConfiguration, i int, d *diagnostics) (p manifest.Plugin, ok bool) {
	entry, at := &c.Plugins[i], c.Entry(i).Child("path")
	switch {
	case entry.Path == "":
		return c.Object(i, nil), true
	case entry.IsConfigured():
		d.warn(c.Problem(at, entry.Path, "is not read: configuration comes first"))
		return c.Object(i, nil), true
	}
	configuration, err := in.Document(c.Origin, entry.Path)
	if err != nil {
		d.problem(unreadable(c.Origin, at, entry.Path, err))
	}
	return c.Object(i, configuration), err == nil
}
