// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

func TestAlwaysAdmit(t *testing.T) {
	p := configured(t, "AlwaysAdmit", "")
	p.mutate(request{object: pulls}).is(t, pulls)
	p.validate(request{operation: "DELETE"}).says(t, "allowed")
	if _, problems := configure(t, "AlwaysAdmit", "{a: b}"); !strings.Contains(problems, `unknown field "a"`) {
		t.Errorf("%q", problems)
	}
}

func TestDenyServiceExternalIPs(t *testing.T) {
	const denied = `403 services "web" is forbidden: Use of external IPs is denied by admission control`
	with := func(ips string) string { return "{metadata: {name: web}, spec: {externalIPs: [" + ips + "]}}" }
	p := configured(t, "DenyServiceExternalIPs", "")
	for name, row := range map[string]struct {
		operation, object, old, want string
	}{
		"none":              {"CREATE", with(""), "", "allowed"},
		"one":               {"CREATE", with("1.1.1.1"), "", denied},
		"still none":        {"UPDATE", with(""), with(""), "allowed"},
		"a first one":       {"UPDATE", with("1.1.1.1"), with(""), denied},
		"the same":          {"UPDATE", with("1.1.1.1, 2.2.2.2"), with("2.2.2.2, 1.1.1.1"), "allowed"},
		"one less":          {"UPDATE", with("1.1.1.1"), with("1.1.1.1, 2.2.2.2"), "allowed"},
		"one more":          {"UPDATE", with("1.1.1.1, 2.2.2.2"), with("1.1.1.1"), denied},
		"another":           {"UPDATE", with("2.2.2.2"), with("1.1.1.1"), denied},
		"none any more":     {"UPDATE", with(""), with("1.1.1.1"), "allowed"},
		"it is deleted":     {"DELETE", "", with("1.1.1.1"), "allowed"},
		"it is not decoded": {"CREATE", "{spec: {externalIPs: 1}}", "", "error: the object cannot be decoded as v1.Service: spec.externalIPs is not a []string"},
	} {
		t.Run(name, func(t *testing.T) {
			p.validate(request{operation: row.operation, resource: "services", object: row.object, old: row.old}).says(t, row.want)
		})
	}
	p.validate(request{resource: "services", subresource: "status", object: with("1.1.1.1")}).says(t, "allowed")
	p.validate(request{resource: "example.com/services", object: with("1.1.1.1")}).says(t, "allowed")
}

func TestLimitPodHardAntiAffinityTopology(t *testing.T) {
	const only = `has TopologyKey %K but only key kubernetes.io/hostname is allowed`
	p := configured(t, "LimitPodHardAntiAffinityTopology", "")
	for name, row := range map[string]struct{ affinity, want string }{
		"none":               {"", "allowed"},
		"no anti-affinity":   {"{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}", "allowed"},
		"an empty one":       {"{podAntiAffinity: {}}", "allowed"},
		"of nodes":           {"{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}", "allowed"},
		"of zones":           {"{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}", "zone"},
		"of nothing":         {"{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}", ""},
		"of nodes and zones": {"{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}, {topologyKey: region}]}}", "region"},
		"preferred":          {"{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}", "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, want := "", row.want
			if row.affinity != "" {
				spec = "affinity: " + row.affinity
			}
			if want != "allowed" {
				want = `403 pods "web" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling ` + strings.Replace(only, "%K", want, 1)
			}
			p.validate(request{object: pod("", spec)}).says(t, want)
			p.validate(request{operation: "UPDATE", object: pod("", spec)}).says(t, want)
			p.validate(request{subresource: "status", object: pod("", spec)}).says(t, "allowed")
		})
	}
}

func TestCertificateSubjectRestriction(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := func(groups ...string) string {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann", Organization: groups}}, key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	const client, node = "kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet"
	const prefix = `403 certificatesigningrequests.certificates.k8s.io "web" is forbidden: `
	p := configured(t, "CertificateSubjectRestriction", "")
	for name, row := range map[string]struct{ signer, request, want string }{
		"of the almighty":              {client, of("system:masters"), prefix + "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"},
		"of the almighty among others": {client, of("dev", "system:masters"), prefix + "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"},
		"of others":                    {client, of("dev", "system:master"), "allowed"},
		"of nobody":                    {client, of(), "allowed"},
		"by another signer":            {node, of("system:masters"), "allowed"},
		"that is none":                 {client, "none", prefix + "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"},
		"that is none, by another":     {node, "none", "allowed"},
		"of another type":              {client, strings.ReplaceAll(of("dev"), "CERTIFICATE REQUEST", "CERTIFICATE"), prefix + "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			q := request{
				resource: "certificates.k8s.io/certificatesigningrequests",
				object:   "{metadata: {name: web}, spec: {signerName: " + row.signer + ", request: " + base64.StdEncoding.EncodeToString([]byte(row.request)) + "}}",
			}
			p.validate(q).says(t, row.want)
			for _, other := range []request{{operation: "UPDATE"}, {subresource: "approval"}, {resource: "example.com/certificatesigningrequests"}} {
				other.object = q.object
				if other.resource == "" {
					other.resource = q.resource
				}
				p.validate(other).says(t, "allowed")
			}
		})
	}
	garbled := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("no")}))
	got := p.validate(request{resource: "certificates.k8s.io/certificatesigningrequests",
		object: "{spec: {signerName: " + client + ", request: " + base64.StdEncoding.EncodeToString([]byte(garbled)) + "}}"})
	if !strings.HasPrefix(got.String(), prefix+"failed to parse CSR: ") {
		t.Error(got)
	}
}

func TestSecurityContextDeny(t *testing.T) {
	p := configured(t, "SecurityContextDeny", "")
	in := func(list, said string) string {
		return list + ": [{name: a}, {name: b, securityContext: {" + said + "}}]"
	}
	for spec, want := range map[string]string{
		"":                                      "",
		"securityContext: {}":                   "",
		"securityContext: {runAsNonRoot: true}": "",
		"securityContext: {supplementalGroups: [1], runAsUser: 1}": "pod.Spec.SecurityContext.SupplementalGroups",
		"securityContext: {seLinuxOptions: {}, runAsUser: 1}":      "pod.Spec.SecurityContext.SELinuxOptions",
		"securityContext: {runAsUser: 0, fsGroup: 1}":              "pod.Spec.SecurityContext.RunAsUser",
		"securityContext: {fsGroup: 0}":                            "pod.Spec.SecurityContext.FSGroup",
		in("containers", ""):                                       "",
		in("containers", "privileged: true, runAsGroup: 1"):        "",
		in("containers", "seLinuxOptions: {}, runAsUser: 1"):       "SecurityContext.SELinuxOptions",
		in("containers", "runAsUser: 0"):                           "SecurityContext.RunAsUser",
		in("initContainers", "seLinuxOptions: {}"):                 "SecurityContext.SELinuxOptions",
		in("initContainers", "runAsUser: 1"):                       "SecurityContext.RunAsUser",
		in("ephemeralContainers", "runAsUser: 1"):                  "",
	} {
		if want == "" {
			want = "allowed"
		} else {
			want = `403 pods "web" is forbidden: ` + want + " is forbidden"
		}
		p.validate(request{object: pod("", spec)}).says(t, want)
		p.validate(request{operation: "UPDATE", object: pod("", spec)}).says(t, want)
		p.validate(request{subresource: "status", object: pod("", spec)}).says(t, "allowed")
	}
}

// Plugins are in kube-apiserver's order, and those of others before the one that it asks
// last.
func TestOrderOfPlugins(t *testing.T) {
	var names []string
	for _, p := range kubernetes.Plugins(plugin.Plugin{Name: "mine"}) {
		names = append(names, p.Name)
	}
	const want = "AlwaysAdmit SecurityContextDeny LimitPodHardAntiAffinityTopology LimitRanger AlwaysPullImages PodSecurity PodNodeSelector Priority " +
		"DefaultTolerationSeconds PodTolerationRestriction EventRateLimit ExtendedResourceToleration DefaultStorageClass OwnerReferencesPermissionEnforcement " +
		"PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest CertificateSubjectRestriction DefaultIngressClass " +
		"DenyServiceExternalIPs ClusterResourceOverride RunOnceDuration PodNodeConstraints ExternalIPRanger FieldRestriction mine AlwaysDeny"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("they are %s", got)
	}
}
