// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRefused: what is misspelt, and what is known to lose calls or to open a hole, is
// refused before anything is applied, and the answer names the place.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ values, at string }{
		{"replicas: 1", "/replicas"},
		{"replicas: 0", "/replicas"},
		{`replicas: "3"`, "/replicas"},
		{"replica: 3", "replica"},
		{"resources: {limits: {cpu: 2}}", "resources"},
		{"cpu: {limit: 2}", "/cpu"},
		{`cpu: "0"`, "/cpu"},
		{`cpu: 50m`, "/cpu"},
		{"memory: 256Mi", "/memory"},
		{"memory: 2G", "/memory"},
		{"memory: 2147483648", "/memory"},
		{"lameDuckSeconds: 0", "/lameDuckSeconds"},
		{"lameDuckSeconds: 95s", "/lameDuckSeconds"},
		{"terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds"},
		{"livenessProbe: {}", "livenessProbe"},
		{"image: {tag: latest}", "/image/tag"},
		{"image: {digest: sha256:abc}", "/image/digest"},
		{"autoscaling: {enabled: true, cpuPercent: 95}", "/autoscaling/cpuPercent"},
		{"autoscaling: {minReplicas: 1}", "minReplicas"},
		{"spread: {zones: Never}", "/spread/zones"},
		{"priorityClass: {value: 2000001000}", "/priorityClass/value"},
		{"priorityClass: {create: false}", "/priorityClass/name"},
		{"service: {type: ExternalName}", "/service/type"},
		{"service: {loadBalancerSourceRanges: [10.0.0.1]}", "/service/loadBalancerSourceRanges/0"},
		{"networkPolicy: {callers: []}", "/networkPolicy/callers"},
		{"networkPolicy: {monitoring: [{}]}", "/networkPolicy/monitoring/0"},
		{"networkPolicy: {monitoring: [{namespaceSelectors: {}}]}", "namespaceSelectors"},
		{"tls: {clientAuth: None}", "/tls/clientAuth"},
		{"tls: {authorities: {clients: clients.crt, operators: operators.crt}}", "/tls/authorities/clients"},
		{"tls: {authorities: {clients: \"-----BEGIN CERTIFICATE-----\\n-----END CERTIFICATE-----\\n\"}}", "/tls/authorities/operators"},
		{"tls: {certManager: {enabled: true}}", "/tls/certManager"},
		{"tls: {certManager: {enabled: true, issuer: {name: ca}}}", "/tls/certManager/dnsNames"},
		{"registry: {manifests: {clusters: text}}", "clusters"},
		{"registry: {configMaps: [Team]}", "/registry/configMaps/0"},
		{"registry: {configMaps: [a, a]}", "/registry/configMaps"},
		{"registry: {secrets: [../etc]}", "/registry/secrets/0"},
		{"registry: {source: Api}", "/registry/source"},
		{"registry: {source: API, manifests: {a.yaml: text}}", "/registry/manifests"},
		{"registry: {source: API, configMaps: [a]}", "/registry/configMaps"},
		{"registry: {source: API, secrets: [a]}", "/registry/secrets"},
		{"registry: {api: {namespace: kube-system}}", "/registry/api/namespace"},
		{"registry: {api: {namespace: \"\"}}", "/registry/api/namespace"},
		{"registry: {api: {activationSpreadSeconds: 20s}}", "/registry/api/activationSpreadSeconds"},
		{"registry: {api: {activationSpreadSeconds: 3600}}", "/registry/api/activationSpreadSeconds"},
		{"registry: {api: {probationSeconds: 1}}", "/registry/api/probationSeconds"},
		{"registry: {api: {confirm: all}}", "/registry/api/confirm"},
		{"registry: {api: {size: 1Mi}}", "/registry/api/size"},
		{"registry: {api: {memory: 64Mi}}", "/registry/api/memory"},
		{"registry: {api: {live: false}}", "live"},
		{"podMonitor: {enabled: true}", "/podMonitor"},
		{"controller: {enabled: true}", "/controller"},
		{"controller: {enabled: true, adminSecretName: a}", "/controller"},
		{"controller: {dryRun: sometimes}", "/controller/dryRun"},
		{"controller: {memory: 16Mi}", "/controller/memory"},
		{"configuration: {listen: 0.0.0.0:80}", "listen"},
		{"configuration: {tls: {clientAuth: IfGiven}}", "tls"},
		{"configuration: {admin: {listen: 0.0.0.0:80}}", "listen"},
		{"configuration: {sources: []}", "sources"},
		{"configuration: {lameDuck: 1s}", "lameDuck"},
		{"configuration: {limits: {bodybytes: 1}}", "bodybytes"},
		{"configuration: {reloadInterval: 2}", "/configuration/reloadInterval"},
		{"configuration: {log: {level: verbose}}", "/configuration/log/level"},
		{"configuration: {bypass: {rules: [{name: x, namespace: [y]}]}}", "namespace"},
		{"env: [{name: GOMEMLIMIT, value: 2GiB}]", "/env/0/name"},
		{"env: [{name: GOMAXPROCS, value: \"8\"}]", "/env/0/name"},
	} {
		t.Run(c.values, func(t *testing.T) {
			var values map[string]any
			if err := yaml.UnmarshalStrict([]byte(c.values), &values); err != nil {
				t.Fatal(err)
			}
			_, err := render(values, release)
			if err == nil {
				t.Fatal("it is rendered")
			}
			if !strings.Contains(err.Error(), "don't meet the specifications of the schema") || !strings.Contains(err.Error(), c.at) {
				t.Errorf("the answer does not name %s: %v", c.at, err)
			}
		})
	}
}

// The registry's namespace must not be where the serving key is, which only a template
// can compare.
func TestNamespaces(t *testing.T) {
	_, err := render(map[string]any{"registry": map[string]any{"source": "API", "api": map[string]any{"namespace": release.Namespace}}}, release)
	if err == nil || !strings.Contains(err.Error(), "must be another namespace than the release's") {
		t.Errorf("%v", err)
	}
}
