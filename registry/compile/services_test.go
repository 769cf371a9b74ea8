// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

const routed = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]s}
spec:
  authentication: {certificate: {commonNames: [%[1]s]}}
  services: %[2]s
---
`

const serviceWebhook = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s, annotations: {dispatcher.dev/cluster: "%[2]s"}}
webhooks:
- name: one.example.com
  clientConfig: {service: {namespace: policies, name: guard, port: 8443, path: /judge}}
  rules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]
  sideEffects: None
  admissionReviewVersions: [v1]
---
`

func compiledText(t *testing.T, text string) *compile.Compiled {
	t.Helper()
	h := home{t, t.TempDir()}
	h.put("all.yaml", text)
	return h.good(compile.Options{})
}

// specs returns where the webhooks of a cluster are dialled, by configuration.
func specs(t *testing.T, c *compile.Compiled, cluster string) map[string]transport.Identity {
	t.Helper()
	found := map[string]transport.Identity{}
	for _, e := range c.Clusters[cluster].Chain(chain.Validating).Webhooks {
		found[e.ID.Configuration] = e.Hook.(*webhook.Hook).Target.Identity()
	}
	return found
}

func identityAt(addresses ...string) transport.Identity {
	s := transport.TargetSpec{URL: "https://guard.policies.svc:8443/judge", ServerName: "guard.policies.svc"}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, transport.EndpointSpec{Address: a})
	}
	return s.Identity()
}

// A webhook that names a Service is dialled in each cluster as that cluster says, with the
// name of the Service as that of the server; the first route counts, the endpoints of a
// binding come before all, and without a route it is DNS as ever (E23).
func TestE23Services(t *testing.T) {
	text := fmt.Sprintf(routed, "east", `[{names: [policies/guard], gateway: "gateway.east.example.com:443"}, {names: ["*/*"], gateway: "other.example.com:443"}]`) +
		fmt.Sprintf(routed, "west", `[{names: ["*/other"], gateway: "other.example.com:443"}, {names: [policies/guard], endpoints: ["203.0.113.7:443", "203.0.113.8:443"]}]`) +
		fmt.Sprintf(routed, "plain", `[]`) + fmt.Sprintf(routed, "elsewhere", `[{names: [a/b], gateway: "gateway.example.com:443"}]`) +
		fmt.Sprintf(serviceWebhook, "all", "") + fmt.Sprintf(serviceWebhook, "own", "east") +
		"apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: bound}\nspec: {webhooks: [east/own/*], endpoints: [{address: \"203.0.113.9:443\"}]}\n"
	c := compiledText(t, text)
	for _, want := range []struct {
		cluster string
		of      map[string]transport.Identity
	}{
		{"east", map[string]transport.Identity{"all": identityAt("gateway.east.example.com:443"), "east/own": identityAt("203.0.113.9:443")}},
		{"west", map[string]transport.Identity{"all": identityAt("203.0.113.7:443", "203.0.113.8:443")}},
		{"plain", map[string]transport.Identity{"all": identityAt()}},
		{"elsewhere", map[string]transport.Identity{"all": identityAt()}},
	} {
		got := specs(t, c, want.cluster)
		if fmt.Sprint(got) != fmt.Sprint(want.of) {
			t.Errorf("%s: %v, want %v", want.cluster, got, want.of)
		}
	}
}

// A configuration of one cluster is in no chain of another, "*/*" does not bind it, and it
// may be called as one of another cluster or of all is (E24).
func TestE24ConfigurationsOfOneCluster(t *testing.T) {
	route := `[{names: ["*/*"], gateway: "gateway.example.com:443"}]`
	text := fmt.Sprintf(routed, "east", route) + fmt.Sprintf(routed, "west", route) + fmt.Sprintf(routed, "plain", "[]") +
		fmt.Sprintf(serviceWebhook, "same", "") + fmt.Sprintf(serviceWebhook, "same", "east") + fmt.Sprintf(serviceWebhook, "same", "west") +
		"apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: all}\nspec: {webhooks: [\"*/*\"], mode: Warn}\n---\n" +
		"apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: east}\nspec: {webhooks: [\"east/*/*\"], mode: Shadow}\n"
	c := compiledText(t, text)
	for cluster, want := range map[string]string{"east": "same Warn, east/same Shadow", "west": "same Warn, west/same Enforce", "plain": "same Warn"} {
		var got []string
		for _, e := range c.Clusters[cluster].Chain(chain.Validating).Webhooks {
			got = append(got, fmt.Sprint(e.ID.Configuration, " ", e.Mode))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %v, want %s", cluster, got, want)
		}
	}
	if !slices.ContainsFunc(c.Targets, func(x *transport.Target) bool { return x.Identity() == identityAt("gateway.example.com:443") }) {
		t.Error("no Target is at the gateway")
	}
}
