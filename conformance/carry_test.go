// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission/plugin/webhook/testcerts"
	"sigs.k8s.io/yaml"
)

// serverName is the name in the certificate of the published webhook server.
const serverName = "webhook-test.default.svc"

// notCarried are the published cases that no registry could hold, with the
// reason. A case that is not listed must be carried.
var notCarried = map[string]string{
	"NewNonMutatingTestCases/Validating/match & invalid client config":  neitherURLNorService,
	"ConvertToMutatingTestCases/Mutating/match & invalid client config": neitherURLNorService,
	"NewNonMutatingPanicTestCases/Validating/match & allow, but panic":  "the API server panics in its own code before it calls a webhook that allows: nothing outside of the dispatcher can make it panic",
}

const neitherURLNorService = "neither url nor service: the API server refuses to store it, and so do we"

// carrier writes the webhooks of many cases into one registry: each case is a
// cluster of its own, whose configurations serve that cluster alone.
type carrier struct {
	t     *testing.T
	dir   string
	cases int
}

// carry adds one case and returns the name of its cluster. What is changed on the
// way is all of it in here:
//   - names, which a registry wants fully qualified;
//   - the version, v1beta1, because that stores side effects Some and Unknown, and
//     what the plugins take an absent failurePolicy for;
//   - rules without groups, versions or resources, which select nothing;
//   - Services, whose names mean nothing here, become URLs of the same path.
func (c *carrier) carry(p *published) (cluster string) {
	c.t.Helper()
	c.cases++
	var webhooks any = p.validating
	if p.kind == "Mutating" {
		webhooks = p.mutating
	}
	cluster = fmt.Sprintf("case-%d", c.cases)
	manifest := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1beta1",
		"kind":       p.kind + "WebhookConfiguration",
		"metadata":   map[string]any{"name": cluster},
		"webhooks":   c.webhooks(webhooks),
	}
	data, err := yaml.Marshal(manifest)
	if err != nil {
		c.t.Fatal(err)
	}
	write(c.t, c.dir, "registry/"+cluster+".yaml", data)
	write(c.t, c.dir, "registry/"+cluster+"-cluster.yaml", fmt.Appendf(nil, clusterManifest, cluster, p.server.Host, serverName))
	return cluster
}

func (c *carrier) webhooks(list any) []map[string]any {
	data, err := json.Marshal(list)
	if err != nil {
		c.t.Fatal(err)
	}
	var out []map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		c.t.Fatal(err)
	}
	for _, w := range out {
		w["name"] = qualified(w["name"].(string))
		setDefault(w, "failurePolicy", "Fail")
		setDefault(w, "admissionReviewVersions", []string{"v1beta1"})
		w["clientConfig"] = map[string]any{"url": "https://" + serverName + pathOf(w["clientConfig"].(map[string]any))}
		rules, _ := w["rules"].([]any)
		for _, r := range rules {
			for _, field := range []string{"apiGroups", "apiVersions", "resources"} {
				setDefault(r.(map[string]any), field, []string{"nothing"})
			}
		}
	}
	return out
}

func setDefault(m map[string]any, field string, value any) {
	if _, ok := m[field]; !ok {
		m[field] = value
	}
}

// pathOf returns the path of a client configuration of either form.
func pathOf(c map[string]any) string {
	if text, ok := c["url"].(string); ok {
		if u, err := url.Parse(text); err == nil {
			return u.Path
		}
	}
	service, _ := c["service"].(map[string]any)
	path, _ := service["path"].(string)
	return "/" + strings.TrimPrefix(path, "/")
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// qualified makes a webhook's name one that a registry takes.
func qualified(name string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-") + ".conformance.example.com"
}

// The published server answers every review with a v1beta1 one without uid, which
// kube-apiserver lets pass and we do not (C28): hence the compatibility.
const clusterManifest = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]q, labels: {case: %[1]q}}
spec:
  authentication: {certificate: {commonNames: [%[1]q]}}
  namespaces: {labels: {webhook-test: {runlevel: "0"}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: %[1]q}
spec:
  webhooks: ["%[1]s/*"]
  clusterSelector: {matchLabels: {case: %[1]q}}
  onlySelectedClusters: true
  compatibility: APIServer
  breaker: {enabled: false}
  hedge: "Off"
  endpoints: [{address: %[2]q, serverName: %[3]q, caFile: ../webhook-ca.crt}]
  clientCertificate: {certFile: ../webhook-client.crt, keyFile: ../webhook-client.key}
`

// credentials writes what the published webhook server asks for.
func (c *carrier) credentials() {
	write(c.t, c.dir, "webhook-ca.crt", testcerts.CACert)
	write(c.t, c.dir, "webhook-client.crt", testcerts.ClientCert)
	write(c.t, c.dir, "webhook-client.key", testcerts.ClientKey)
}
