// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func TestCABundle(t *testing.T) {
	good := newAuthority(t, "good", time.Now().Add(1000*time.Hour))
	expired := newAuthority(t, "old", time.Now().Add(-time.Hour))
	soon := newAuthority(t, "soon", time.Now().Add(24*time.Hour))
	for name, c := range map[string]struct{ bundle, problem, warning string }{
		"E3 good":                      {"# comment\n" + good.pem() + good.pem(), "", ""},
		"E3 not PEM":                   {"certificate", "holds no PEM certificate", ""},
		"E3 only white space":          {"\n", "holds no PEM certificate", ""},
		"E3 private key inside":        {good.pem() + good.keyPEM(), "holds a private key", ""},
		"E3 other block inside":        {good.pem() + "-----BEGIN X-----\n-----END X-----\n", "holds a PEM block", ""},
		"E3 broken certificate":        {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 does not parse", ""},
		"E3 expired is a warning":      {good.pem() + expired.pem(), "", `certificate "CN=old" expired`},
		"E3 expires soon is a warning": {soon.pem(), "", `certificate "CN=soon" expires`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.put("webhook.yaml", strings.ReplaceAll(fmt.Sprintf(webhookYAML, "ca.policy"), "clientConfig: {",
				"clientConfig: {caBundle: "+base64.StdEncoding.EncodeToString([]byte(c.bundle))+", "))
			h.put("binding.yaml", `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: endpoint}
spec: {webhooks: ["*/*"], endpoints: [{address: "192.0.2.1:443", caFile: ca.pem}]}
`)
			h.put("ca.pem", c.bundle)
			_, problems, warnings := h.compile(compile.Options{})
			for _, at := range []string{"webhooks[0].clientConfig.caBundle", "spec.endpoints[0].caFile"} {
				wantOne(t, problems, at, c.problem)
				wantOne(t, warnings, at, c.warning)
			}
		})
	}
}

// wantOne wants a problem of the field with the reason; none for "".
func wantOne(t *testing.T, problems []manifest.Problem, field, reason string) {
	t.Helper()
	for _, p := range problems {
		if p.Field != field {
			continue
		}
		if reason == "" || !strings.Contains(p.Reason, reason) {
			t.Errorf("%s, want %q", p, reason)
		}
		return
	}
	if reason != "" {
		t.Errorf("nothing about %s in %v, want %q", field, problems, reason)
	}
}

// Client certificates, for webhooks and for clusters' APIs, are warned of before they
// end too (E3).
func TestClientCertificateExpiry(t *testing.T) {
	soon, later := newAuthority(t, "soon", time.Now().Add(24*time.Hour)), newAuthority(t, "later", time.Now().Add(1000*time.Hour))
	for name, c := range map[string]struct {
		authority
		warnings int
	}{"soon": {soon, 2}, "later": {later, 0}} {
		h := newHome(t)
		h.put("client.crt", c.pem())
		h.put("client.key", c.keyPEM())
		h.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\n"+
			"spec: {webhooks: [\"*/*\"], clientCertificate: {certFile: client.crt, keyFile: client.key}}\n")
		h.put("cluster.yaml", strings.Replace(clusterYAML, "anonymous: true}", "anonymous: true}, kubeconfigFile: kubeconfig", 1))
		h.put("kubeconfig", `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api.example.com"}}]
users: [{name: a, user: {client-certificate: client.crt, client-key: client.key}}]
`)
		_, problems, warnings := h.compile(compile.Options{})
		warnings = slices.DeleteFunc(warnings, func(w manifest.Problem) bool { return w.Rule != "" }) // of the webhook itself
		if len(problems) > 0 || len(warnings) != c.warnings {
			t.Errorf("%s: problems %v, warnings %v", name, problems, warnings)
		}
		for _, w := range warnings {
			if !strings.Contains(w.String(), `certificate "CN=soon" expires`) {
				t.Errorf("warning %v", w)
			}
		}
	}
}
