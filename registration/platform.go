// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Platform is how a cluster's control plane is run, as far as a registration depends on it.
type Platform struct {
	Name string
	// Presents says whether its API server can be given a credential. Where it cannot, the
	// cluster is known by a path secret.
	Presents    bool
	steps       string            // how what is printed gets there
	obstacles   string            // that others have met
	refusesWide bool              // it refuses rules for every resource of every group
	annotations map[string]string // that keep the platform from changing the objects
}

// Platforms returns the names of the platforms that are known, in order.
func Platforms() []string { return slices.Sorted(maps.Keys(platforms())) }

// PlatformOf returns the platform of that name, or nil.
func PlatformOf(name string) *Platform {
	p, known := platforms()[name]
	if !known {
		return nil
	}
	p.Name = name
	return &p
}

func (p *Platform) annotated() map[string]string {
	if p == nil {
		return nil
	}
	return maps.Clone(p.annotations)
}

// notes are what a person should know who applies the registration there; "": nothing.
func (p *Platform) notes(r Registration) string {
	if p == nil {
		return ""
	}
	notes := "\nOn " + p.Name + ":\n" + indented(p.steps) + indented(p.obstacles)
	if p.refusesWide && r.isWide() {
		notes += indented("Here Autopilot refuses what is below: it has a rule for every resource of every group,\nbecause a webhook has one. Narrow the rules of that webhook.")
	}
	return notes
}

// Steps are how what is printed gets to the control plane.
func (p *Platform) Steps() string { return p.steps }

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return out.String()
}

// isWide reports whether an entry selects every resource of every group.
func (r Registration) isWide() bool {
	for _, entries := range r.entries {
		for i := range entries {
			if slices.ContainsFunc(entries[i].rules, wide) {
				return true
			}
		}
	}
	return false
}

func wide(r admissionregistrationv1.RuleWithOperations) bool {
	return slices.Contains(r.APIGroups, "*") && slices.ContainsFunc(r.Resources, func(s string) bool { return s == "*" || s == "*/*" })
}

const managedSteps = `The control plane presents nothing: give the Cluster pathSecretSHA256, and sourceRanges
with the addresses that its control plane calls from. An API server shows the URL to its
user when a call fails: the secret keeps other clusters out, not the users of this one.
`

// platforms are what is known, from the platforms' documentation and from what others met.
func platforms() map[string]Platform {
	return map[string]Platform{
		"kubeadm": {Presents: true, steps: `Put the files of --caller into /etc/kubernetes/admission-dispatcher on each control plane
host. kube-apiserver is a static pod and sees that directory only as a volume. In the
ClusterConfiguration (kubeadm init phase control-plane apiserver makes the pod anew):
  apiServer:
    extraArgs:
    - {name: admission-control-config-file, value: /etc/kubernetes/admission-dispatcher/admission-configuration.yaml}
    extraVolumes:
    - {name: admission-dispatcher, hostPath: /etc/kubernetes/admission-dispatcher, mountPath: /etc/kubernetes/admission-dispatcher, readOnly: true, pathType: Directory}
`, obstacles: `The pod resolves names by the DNS of its host, not by that of the cluster: a URL with the
name of a Service cannot be resolved. Use a Service reference, or a name that the host knows.
`},
		"kind": {Presents: true, steps: `Put the files of --caller into ./admission-dispatcher and create the cluster with:
  kind: Cluster
  apiVersion: kind.x-k8s.io/v1alpha4
  nodes:
  - role: control-plane
    extraMounts:
    - {hostPath: ./admission-dispatcher, containerPath: /etc/kubernetes/admission-dispatcher, readOnly: true}
    kubeadmConfigPatches:
    - |
      kind: ClusterConfiguration
      apiServer:
        extraArgs: {admission-control-config-file: /etc/kubernetes/admission-dispatcher/admission-configuration.yaml}
        extraVolumes:
        - {name: admission-dispatcher, hostPath: /etc/kubernetes/admission-dispatcher, mountPath: /etc/kubernetes/admission-dispatcher, readOnly: true, pathType: Directory}
`, obstacles: `Both mounts are needed: of the host into the node, and of the node into the static pod.
From the node, the host is the gateway of the docker network named kind, not 127.0.0.1: the
serving certificate must have that address, or the name that registration.url has.
`},
		"k3s": {Presents: true, steps: `Put the files of --caller into /etc/kubernetes/admission-dispatcher on each server, and into
/etc/rancher/k3s/config.yaml:
  kube-apiserver-arg:
  - admission-control-config-file=/etc/kubernetes/admission-dispatcher/admission-configuration.yaml
Then restart k3s. kube-apiserver is a part of its process and sees the files of the host.
`, obstacles: `The process resolves names by the DNS of the host: use a Service reference, or a name that
the host knows.
`},
		"eks": {steps: managedSteps, obstacles: `The control plane does not resolve names of private hosted zones
(aws/containers-roadmap#1606): use a public name, or a Service without a selector and a
Service reference.
`},
		"gke": {refusesWide: true, steps: managedSteps, obstacles: `In a private cluster the firewall lets the control plane reach ports 443 and 10250 of nodes
only (kubernetes/kubernetes#79739): another port of a Service reference needs a rule.
Autopilot refuses rules with apiGroups and resources "*" (open-policy-agent/gatekeeper#2380).
`},
		"aks": {steps: managedSteps, annotations: map[string]string{"admissions.enforcer/disabled": "true"}, obstacles: `The admissions enforcer adds terms to namespaceSelectors (Azure/AKS#1771). The annotation
below keeps it from that; without it what is applied differs from what is printed for good.
`},
		"openshift": {steps: `The kube-apiserver operator owns the configuration of the API server, and has no supported
field for the credential of webhooks. ` + managedSteps, obstacles: `Namespaces named openshift-* are the platform's: add a bypass for them if it must upgrade
while the dispatcher is down.
`},
	}
}
