// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const everythingYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: all}
webhooks:
- name: all.example.com
  clientConfig: {url: "https://hook.example.com/"}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: ["", coordination.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, leases, nodes]}]
`

// byRule returns the warnings of a rule.
func byRule(warnings []manifest.Problem, rule string) (texts []string) {
	for _, w := range warnings {
		if w.Rule == rule {
			texts = append(texts, w.Reason)
		}
	}
	return texts
}

// What an outage stops is judged after the rules bypass and failOpen, of each cluster that
// calls the webhook; what the bypass leaves undecided is said (E10).
func TestE10AfterTheBypass(t *testing.T) {
	const (
		plain = "authentication: {certificate: {commonNames: [a]}}"
		bare  = ", bypass: {inherit: false}"
		shut  = ", failOpen: {inherit: false}"
		stops = "with failurePolicy Fail an outage of this webhook stops "
		holds = "requests in kube-system, kube-node-lease pass without any call: what these decide does not hold there: all/all.example.com"
	)
	for name, c := range map[string]struct {
		clusters     []string
		stops, holds string
	}{
		"by default":               {[]string{plain}, "", holds},
		"without a cluster":        {nil, "", holds},
		"without bypass":           {[]string{plain + bare}, stops + "leases, writes in kube-system", ""},
		"without failOpen":         {[]string{plain + shut}, stops + "nodes that join", holds},
		"without any":              {[]string{plain + bare + shut}, stops + "leases, nodes that join, writes in kube-system", ""},
		"in one cluster of two":    {[]string{plain, strings.Replace(plain, "[a]", "[b]", 1) + bare}, stops + "leases, writes in kube-system in Cluster/c1", holds},
		"a rule of the cluster":    {[]string{plain + ", bypass: {rules: [{name: mine, namespaces: [infra]}]}"}, "", "requests in infra pass without any call in Cluster/c0: what these decide does not hold there: all/all.example.com"},
		"a rule that names others": {[]string{plain + ", bypass: {inherit: false, rules: [{name: mine, namespaces: [infra], users: [ann]}]}"}, stops + "leases, writes in kube-system", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.put("webhook.yaml", everythingYAML)
			h.put("cluster.yaml", "")
			for i, spec := range c.clusters {
				h.put(fmt.Sprintf("cluster%d.yaml", i), fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c%d}\nspec: {%s}\n", i, spec))
			}
			_, problems, warnings := h.compile(compile.Options{Bypass: exempt.DefaultBypass(""), FailOpen: exempt.DefaultFailOpen()})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := strings.Join(byRule(warnings, "W1"), "; "); got != c.stops {
				t.Errorf("W1: %q, want %q", got, c.stops)
			}
			if got := strings.Join(byRule(warnings, "W13"), "; "); !strings.Contains(got, c.holds) || c.holds == "" && got != "" {
				t.Errorf("W13: %q, want %q", got, c.holds)
			}
		})
	}
}

// What is filled in at run time, in another cluster, is a warning of what is missing here
// (E10).
func TestE10FilledInAtRunTime(t *testing.T) {
	const (
		none    = "is empty, and the webhook is a Service: only the system's authorities are trusted, and none of them signs the name of a Service, so every call fails"
		service = "clientConfig: {service: {name: s, namespace: infra}}"
		rules   = `, rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]`
		bound   = "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\nspec: {webhooks: [\"*/*\"], endpoints: [{address: \"10.0.0.1:443\"%s}]%s}\n"
	)
	for name, c := range map[string]struct {
		annotation, webhook, fields, binding string
		rule, want                           string
	}{
		"no caBundle":             {"", "w.example.com", service + rules, "", "W10", none},
		"cainjector":              {"cert-manager.io/inject-ca-from: infra/c", "w.example.com", service + rules, "", "W10", none + " until cert-manager's cainjector has filled it in, which it does in its own cluster only"},
		"a URL":                   {"", "w.example.com", `clientConfig: {url: "https://w.example.com/"}` + rules, "", "W10", ""},
		"a caFile":                {"", "w.example.com", service + rules, fmt.Sprintf(bound, ", caFile: ca.crt", ""), "W10", ""},
		"endpoints without":       {"", "w.example.com", service + rules, fmt.Sprintf(bound, "", ""), "W10", none},
		"a caFile, elsewhere":     {"", "w.example.com", service + rules, fmt.Sprintf(bound, ", caFile: ca.crt", ", clusterSelector: {matchLabels: {env: nowhere}}"), "W10", none},
		"no rules":                {"", "w.example.com", service, "", "W11", "is empty: the webhook is never called"},
		"Tekton":                  {"", "webhook.pipeline.tekton.dev", service, "", "W11", "is empty: the webhook is never called. Tekton fills it in at run time, in its own cluster only"},
		"rules":                   {"", "webhook.pipeline.tekton.dev", service + rules, "", "W11", ""},
		"istiod":                  {"", "rev.validation.istio.io", service + rules + ", failurePolicy: Ignore", "", "W12", "istiod sets Fail at run time, in its own cluster only: here it stays Ignore"},
		"istiod, where it is set": {"", "rev.validation.istio.io", service + rules, "", "W12", ""},
		"Kyverno":                 {"", "validate.kyverno.svc-fail", service + rules, "", "W12", "Kyverno rewrites the rules with every policy, in its own cluster only: here they stay as they are"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.put("webhook.yaml", fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: c, annotations: {%s}}\nwebhooks:\n"+
				"- {name: %s, sideEffects: None, admissionReviewVersions: [v1], %s}\n", c.annotation, c.webhook, c.fields))
			if c.binding != "" {
				h.put("binding.yaml", c.binding)
				h.put("ca.crt", newAuthority(t, "a", time.Now().Add(1000*time.Hour)).pem())
			}
			_, problems, warnings := h.compile(compile.Options{})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := strings.Join(byRule(warnings, c.rule), "; "); got != c.want {
				t.Errorf("%s: %q, want %q", c.rule, got, c.want)
			}
		})
	}
}

// A way in that nobody has a certificate for is a problem where one is required (E11).
func TestE11WaysIn(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for name, c := range map[string]struct{ authentication, field string }{
		"a certificate":               {"certificate: {commonNames: [a]}", ""},
		"a token":                     {"bearerTokenSHA256: [" + sum + "]", "spec.authentication.bearerTokenSHA256"},
		"anonymous":                   {"anonymous: true", "spec.authentication.anonymous"},
		"anonymous or a certificate":  {"anonymous: true, certificate: {commonNames: [a]}", "spec.authentication.anonymous"},
		"a certificate beside tokens": {"certificate: {commonNames: [a]}, bearerTokenSHA256: [" + sum + "]", ""},
		"a caller with a token":       {"certificate: {commonNames: [a]}, callers: [{name: c, apiGroups: [x.example.com], bearerTokenSHA256: [" + sum + "]}]", "spec.authentication.callers[0].bearerTokenSHA256"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, required := range []bool{true, false} {
				h := newHome(t)
				h.put("cluster.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: kind-dev}\nspec: {authentication: {"+c.authentication+"}}\n")
				_, problems, _ := h.compile(compile.Options{CertificateRequired: required})
				switch {
				case !required || c.field == "":
					if len(problems) > 0 {
						t.Errorf("required %v: %v", required, problems)
					}
				case len(problems) != 1 || problems[0].Field != c.field || !strings.Contains(problems[0].Reason, "set tls.clientAuth: IfGiven"):
					t.Errorf("%v", problems)
				}
			}
		})
	}
}
