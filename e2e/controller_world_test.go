// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// controllersOn turns on the controllers that are compared. One cluster has it as its
// --admission-control-config-file, the dispatcher before the other one as a manifest.
const controllersOn = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: AlwaysAdmit
- name: LimitPodHardAntiAffinityTopology
- name: LimitRanger
- name: AlwaysPullImages
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {audit: restricted}
    exemptions: {namespaces: [secured-0], runtimeClasses: [gvisor]}
- name: PodNodeSelector
  configuration:
    podNodeSelectorPluginConfig: {selected-0: "team=a,zone=b", selected-1: "team=a,zone=a,node.kubernetes.io/pool="}
- name: Priority
- name: DefaultTolerationSeconds
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
    kind: Configuration
    default: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{type: Namespace, qps: 1, burst: 5}]
- name: ExtendedResourceToleration
- name: DefaultStorageClass
- name: OwnerReferencesPermissionEnforcement
- name: PersistentVolumeClaimResize
- name: RuntimeClass
- name: CertificateApproval
- name: CertificateSigning
- name: ClusterTrustBundleAttest
- name: CertificateSubjectRestriction
- name: DefaultIngressClass
- name: DenyServiceExternalIPs
`

// pairOfControllers are two clusters with the same objects: the controllers of one are its
// API server's, those of the other the dispatcher's.
type pairOfControllers struct {
	clusters [2]*cluster
}

// controllerClusters starts both.
func controllerClusters(t *testing.T) *pairOfControllers {
	t.Helper()
	var names []string
	for _, line := range strings.Split(controllersOn, "\n") {
		if name, ok := strings.CutPrefix(line, "- name: "); ok {
			names = append(names, name)
		}
	}
	list := strings.Join(names, ",")
	flags := []string{"--feature-gates=ClusterTrustBundle=true", "--runtime-config=certificates.k8s.io/v1beta1=true", "--allow-privileged"}
	options := [2]clusterOptions{
		{name: "original", admission: controllersOn, flags: append([]string{"--enable-admission-plugins", list}, flags...)},
		{name: "replaced", caller: "east", flags: append([]string{"--disable-admission-plugins", list}, flags...)},
	}
	p := &pairOfControllers{}
	var errs [2]error
	done := make(chan struct{})
	for i := range options {
		go func() {
			defer func() { done <- struct{}{} }()
			p.clusters[i], errs[i] = shared.startCluster(options[i])
		}()
	}
	<-done
	<-done
	for _, c := range p.clusters {
		t.Cleanup(c.close)
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	progress("two kube-apiservers with and without controllers are ready")
	return p
}

// behind puts a dispatcher with manifests before the second cluster, with the rights that it
// prints.
func (p *pairOfControllers) behind(t *testing.T, manifests ...string) {
	t.Helper()
	c := p.clusters[1]
	east, _, _ := strings.Cut(watched(t, c), "\n---\n")
	east = strings.Replace(east, "spec: {", "spec: {timeoutSeconds: 10, ", 1)
	d, err := shared.registry(manifests...)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write("registry/clusters.yaml", east); err != nil {
		t.Fatal(err)
	}
	rights, err := d.run("registration", "--rbac", "--rbac-user", "admission-dispatcher", "--config", filepath.Join(d.dir, "dispatcher.yaml"), "--cluster", "east")
	if err != nil {
		t.Fatal(err)
	}
	c.apply(t, string(rights))
	registration, err := dispatchAs(t, east, nil, manifests...).registration("east")
	if err != nil {
		t.Fatal(err)
	}
	c.register(t, registration)
}
