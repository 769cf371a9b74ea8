// SPDX-License-Identifier: Apache-2.0

package sample

// Controller is one of kube-apiserver's that needs the request and objects of the cluster only.
type Controller struct {
	Name      string
	Random    func(Dice) *Request
	Clustered bool     // some requests are in no namespace
	Comes     []string // of the two phases, in one of a hundred at least
}

// Controllers are all of these, by name.
var Controllers = []Controller{
	{Name: "AlwaysPullImages", Random: podRequest, Comes: []string{"mutated", "validating allowed", "validating denied 500"}},
	{Name: "CertificateSubjectRestriction", Random: certificate, Clustered: true, Comes: []string{"validating allowed", "validating denied 403"}},
	{Name: "DefaultIngressClass", Random: ingress, Comes: []string{"mutated", "mutating allowed"}},
	{Name: "DefaultStorageClass", Random: claim, Comes: []string{"mutated", "mutating allowed"}},
	{Name: "DefaultTolerationSeconds", Random: podRequest, Comes: []string{"mutated", "mutating allowed"}},
	{Name: "DenyServiceExternalIPs", Random: service, Comes: []string{"validating allowed", "validating denied 403"}},
	{Name: "ExtendedResourceToleration", Random: podRequest, Comes: []string{"mutated", "mutating allowed"}},
	{Name: "LimitPodHardAntiAffinityTopology", Random: podRequest, Comes: []string{"validating allowed", "validating denied 403"}},
	{Name: "LimitRanger", Random: limited, Comes: []string{"mutated", "mutating allowed", "validating allowed", "validating denied 403"}},
	{Name: "PersistentVolumeClaimResize", Random: claim, Comes: []string{"validating allowed", "validating denied 403"}},
	{Name: "PodNodeSelector", Random: nodeSelected, Comes: []string{"mutated", "mutating allowed", "mutating denied 403", "mutating denied 500", "validating allowed", "validating denied 403", "validating denied 500"}},
	{Name: "PodTolerationRestriction", Random: tolerating, Comes: []string{"mutated", "mutating allowed", "mutating denied 404", "mutating denied 500", "validating allowed", "validating denied 404", "validating denied 500"}},
	{Name: "Priority", Random: prioritized, Comes: []string{"mutated", "mutating allowed", "mutating denied 403", "validating allowed", "validating denied 403"}},
	{Name: "RuntimeClass", Random: runtimeClassed, Comes: []string{"mutated", "mutating allowed", "mutating denied 403", "validating allowed", "validating denied 403"}},
}
