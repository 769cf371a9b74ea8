// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// chains is a configuration of three clusters that share what they can.
const chains = `
-- clusters.yaml --
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: dev, labels: {env: dev}}
spec: {authentication: {certificate: {commonNames: [dev]}}, timeoutSeconds: 7, limits: {requestBytes: 1000}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: prod-1, labels: {env: prod}}
spec: {authentication: {certificate: {commonNames: [prod-1]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: prod-2, labels: {env: prod}}
spec:
  authentication: {certificate: {commonNames: [prod-2]}}
  namespaces: {labels: {shop: {tier: web}}}
-- webhooks.yaml --
apiVersion: admissionregistration.k8s.io/v1beta1
kind: ValidatingWebhookConfiguration
metadata: {name: zz-beta}
webhooks:
- {name: beta.example.com, clientConfig: {url: "https://hook.example.com/beta"}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: aa}
webhooks:
- {name: two.example.com, clientConfig: {url: "https://hook.example.com/a"}, sideEffects: None, admissionReviewVersions: [v2, v1]}
- {name: one.example.com, clientConfig: {url: "https://hook.example.com/a"}, sideEffects: NoneOnDryRun, admissionReviewVersions: [v1], failurePolicy: Ignore}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: aa}
webhooks:
- {name: mutating.example.com, clientConfig: {service: {name: svc, namespace: ns}}, sideEffects: None, admissionReviewVersions: [v1], reinvocationPolicy: IfNeeded}
-- bindings.yaml --
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: dev}
spec: {webhooks: ["aa/*.example.com"], clusterSelector: {matchLabels: {env: dev}}, mode: Warn, timeout: 250ms}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: first}
spec: {webhooks: ["zz-beta/*"], order: -1}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: last}
spec: {webhooks: ["aa/two.*"], stage: Transactional, compatibility: APIServer}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: only}
spec: {webhooks: ["aa/mutating.*"], clusterSelector: {matchLabels: {env: prod}}, onlySelectedClusters: true}
`

func chainsSnapshot(t *testing.T) *compile.Compiled {
	t.Helper()
	h := home{t, t.TempDir()}
	h.write(txtar.Parse([]byte(chains)).Files)
	return h.good(compile.Options{})
}

func TestChains(t *testing.T) {
	s := chainsSnapshot(t)
	for cluster, want := range map[string][]string{
		"dev": {
			"zz-beta/beta.example.com Ignore Unknown 30s Enforce Validating v1beta1 false 0 https://hook.example.com/beta",
			"aa/one.example.com Ignore NoneOnDryRun 250ms Warn Validating v1 false 0 https://hook.example.com/a",
			"aa/two.example.com Fail None 250ms Warn Transactional v1 false 1 https://hook.example.com/a",
		},
		"prod-1": {
			"zz-beta/beta.example.com Ignore Unknown 30s Enforce Validating v1beta1 false 0 https://hook.example.com/beta",
			"aa/one.example.com Ignore NoneOnDryRun 10s Enforce Validating v1 false 0 https://hook.example.com/a",
			"aa/two.example.com Fail None 10s Enforce Transactional v1 false 1 https://hook.example.com/a",
			"aa/mutating.example.com Fail None 10s Enforce Validating v1 true 0 https://svc.ns.svc:443",
		},
	} {
		c := s.Clusters[cluster]
		var got []string
		for _, w := range slices.Concat(c.Validating.Webhooks, c.Mutating.Webhooks) {
			h := w.Hook.(*webhook.Hook)
			got = append(got, fmt.Sprintf("%s/%s %v %v %v %v %v %v %t %d %s", w.Configuration, w.Name, w.FailurePolicy,
				w.SideEffects, w.Timeout, w.Mode, w.Stage, h.Version, w.Reinvocation, h.Compat, h.Target.URL()))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", cluster, diff)
		}
	}
}

func TestClusterFields(t *testing.T) {
	s := chainsSnapshot(t)
	dev := s.Clusters["dev"]
	if dev.Timeout != 7*time.Second || dev.RequestBytes != 1000 || dev.Labels["env"] != "dev" || dev.Namespaces != nil {
		t.Errorf("%+v", dev)
	}
	if s.Clusters["prod-1"].Timeout != 0 {
		t.Error("a timeout out of nowhere")
	}
}

func TestClustersShare(t *testing.T) {
	s := chainsSnapshot(t)
	dev, one, two := s.Clusters["dev"], s.Clusters["prod-1"], s.Clusters["prod-2"]
	if one.Validating != two.Validating || one.Mutating != two.Mutating {
		t.Error("clusters with equal bindings have chains of their own")
	}
	if dev.Validating == one.Validating {
		t.Error("clusters with different bindings share a chain")
	}
	if dev.Validating.Index == nil || dev.Validating.Index != one.Validating.Index {
		t.Error("chains of the same matchers have indexes of their own")
	}
	if dev.Validating.Webhooks[0] != one.Validating.Webhooks[0] {
		t.Error("a webhook with equal bindings was compiled twice")
	}
	if len(s.Targets) != 3 {
		t.Errorf("%d Targets for three places", len(s.Targets))
	}
}

func TestNamespaceLabels(t *testing.T) {
	h := newHome(t)
	h.put("cluster.yaml", strings.NewReplacer("anonymous: true}", "anonymous: true}, namespaces: "+
		"{labels: {shop: {tier: web}}, defaultLabels: {tier: none}}").Replace(clusterYAML))
	s := h.good(compile.Options{})
	chained := chainsSnapshot(t)
	for name, c := range map[string]struct {
		cluster   *chain.Cluster
		namespace string
		want      map[string]string
	}{
		"listed":           {s.Clusters["dev"], "shop", map[string]string{"tier": "web", "kubernetes.io/metadata.name": "shop"}},
		"default":          {s.Clusters["dev"], "x", map[string]string{"tier": "none", "kubernetes.io/metadata.name": "x"}},
		"no default":       {chained.Clusters["prod-2"], "x", nil},
		"listed, no other": {chained.Clusters["prod-2"], "shop", map[string]string{"tier": "web", "kubernetes.io/metadata.name": "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.cluster.Namespaces.NamespaceLabels(c.namespace)
			if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.want != nil) {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestVersionThatWeSpeak(t *testing.T) {
	for _, w := range chainsSnapshot(t).Clusters["dev"].Validating.Webhooks {
		if v := w.Hook.(*webhook.Hook).Version; v != codec.V1 && v != codec.V1beta1 {
			t.Errorf("%s: version %v", w.Name, v)
		}
	}
}

// A cluster has the process's rules before its own, unless it does not inherit them.
func TestInheritedRules(t *testing.T) {
	rule := func(name string) exempt.Rule { return exempt.Rule{Name: name, Users: []string{name}} }
	for spec, want := range map[string]string{
		"":                                   "[process]",
		"{inherit: true}":                    "[process]",
		"{inherit: false}":                   "[]",
		"{rules: [{name: o, users: [own]}]}": "[process own]",
		"{inherit: false, rules: [{name: o, users: [own]}]}": "[own]",
	} {
		h := newHome(t)
		h.put("cluster.yaml", strings.Replace(clusterYAML, "anonymous: true}}", "anonymous: true}, bypass: "+spec+", failOpen: "+spec+"}", 1))
		rules := []exempt.Rule{rule("process")}
		c := h.good(compile.Options{Bypass: rules, FailOpen: rules}).Clusters["dev"]
		for what, list := range map[string]exempt.Rules{"bypass": c.Bypass, "failOpen": c.FailOpen} {
			users := []string{}
			for _, r := range list.Sources() {
				users = append(users, r.Users...)
			}
			if got := fmt.Sprint(users); got != want {
				t.Errorf("%s %s: %s, want %s", what, spec, got, want)
			}
		}
	}
}

// What the status says of a webhook: the names of the bindings that say something of it
// for clusters that they select, and of no other.
func TestNamesOfBindings(t *testing.T) {
	for _, w := range chainsSnapshot(t).Clusters["prod-1"].Validating.Webhooks {
		want := map[string][]string{"beta.example.com": {"first"}, "two.example.com": {"last"}, "one.example.com": {}}[w.Name]
		if !slices.Equal(w.Bindings, want) {
			t.Errorf("%s has bindings %q, want %q", w.Name, w.Bindings, want)
		}
	}
}

// Where a service is served follows from its name, its port and its path.
func TestAddresses(t *testing.T) {
	for config, want := range map[string]transport.TargetSpec{
		`{service: {namespace: ns, name: svc}}`:                         {URL: "https://svc.ns.svc:443", ServerName: "svc.ns.svc"},
		`{service: {namespace: ns, name: svc, path: /a/b, port: 8443}}`: {URL: "https://svc.ns.svc:8443/a/b", ServerName: "svc.ns.svc"},
		`{url: "https://hook.example.com:8443/a"}`:                      {URL: "https://hook.example.com:8443/a"},
	} {
		h := newHome(t)
		h.put("webhook.yaml", strings.Replace(fmt.Sprintf(webhookYAML, "at.policy"), "{service: {namespace: policies, name: policy, path: /judge}}", config, 1))
		if targets := h.good(compile.Options{}).Targets; len(targets) != 1 || targets[0].Identity() != want.Identity() {
			t.Errorf("%s: Targets %v, want that of %+v", config, targets, want)
		}
	}
}

// A Target that is alive is kept where a webhook is served as before; all others are new.
func TestLivingTargets(t *testing.T) {
	h := newHome(t)
	h.put("other.yaml", strings.NewReplacer("/judge", "/other", "name: policy}\n", "name: other}\n").Replace(fmt.Sprintf(webhookYAML, "other.policy")))
	living := h.good(compile.Options{}).Targets
	h.put("other.yaml", strings.NewReplacer("/judge", "/moved", "name: policy}\n", "name: other}\n").Replace(fmt.Sprintf(webhookYAML, "other.policy")))
	reader := manifest.Reader{Sources: manifest.Directories(h.dir)}
	again, problems, _ := compile.NewCompiler(compile.Options{}).Compile(reader.Read(t.Context()), nil, living)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var kept, made []string
	for _, target := range again.Targets {
		if slices.Contains(living, target) {
			kept = append(kept, target.URL())
		} else {
			made = append(made, target.URL())
		}
	}
	const at = "https://policy.policies.svc:443"
	if !slices.Equal(kept, []string{at + "/judge"}) || !slices.Equal(made, []string{at + "/moved"}) {
		t.Errorf("kept %q, made %q", kept, made)
	}
}

// Chains of different webhooks have different indexes, also where their webhooks stand
// at the same places of their phases.
func TestIndexOfEachPhase(t *testing.T) {
	h := newHome(t)
	write := func(kind, resource string) {
		text := "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "WebhookConfiguration\nmetadata: {name: policy}\nwebhooks:\n"
		for _, name := range []string{"all", "some"} {
			text += "- {name: " + name + ".example.com, clientConfig: {url: \"https://hook.example.com/\"}, sideEffects: None, admissionReviewVersions: [v1], " +
				"rules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [" + resource + "]}]}\n"
		}
		h.put(kind+".yaml", text)
	}
	h.must(os.Remove(filepath.Join(h.dir, "webhook.yaml")))
	write("Validating", "pods")
	write("Mutating", "services")
	// In dev, one webhook of each phase is left.
	h.put("binding.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\n"+
		"spec: {webhooks: [\"policy/all.*\"], onlySelectedClusters: true, clusterSelector: {matchLabels: {a: b}}}\n")
	c := h.good(compile.Options{}).Clusters["dev"]
	if len(c.Validating.Webhooks) != 1 || len(c.Mutating.Webhooks) != 1 || c.Validating.Index == c.Mutating.Index {
		t.Errorf("%d and %d webhooks, one index: %t", len(c.Validating.Webhooks), len(c.Mutating.Webhooks), c.Validating.Index == c.Mutating.Index)
	}
}

// A webhook has 64 matchConditions and no more (E8), as in kube-apiserver.
func TestE8ConditionsAtMost(t *testing.T) {
	for n, good := range map[int]bool{64: true, 65: false} {
		h := newHome(t)
		text := fmt.Sprintf(webhookYAML, "many.policy") + "  matchConditions:\n"
		for i := range n {
			text += fmt.Sprintf("  - {name: c%d, expression: 'true'}\n", i)
		}
		h.put("webhook.yaml", text)
		if _, problems, _ := h.compile(compile.Options{}); (len(problems) == 0) != good {
			t.Errorf("%d: problems %v", n, problems)
		}
	}
}

// Where nothing is configured there is nothing to warn of; where no Cluster is, there is.
func TestNoCluster(t *testing.T) {
	h := newHome(t)
	h.must(os.Remove(filepath.Join(h.dir, "cluster.yaml")))
	_, problems, warnings := h.compile(compile.Options{})
	warnings = slices.DeleteFunc(warnings, func(w manifest.Problem) bool { return w.Rule != "" }) // of the webhook itself
	if len(problems) > 0 || len(warnings) != 1 || warnings[0].Reason != "there is no Cluster: nobody may call" {
		t.Errorf("problems %v, warnings %v", problems, warnings)
	}
	h.must(os.Remove(filepath.Join(h.dir, "webhook.yaml")))
	if _, problems, warnings := h.compile(compile.Options{}); len(problems)+len(warnings) > 0 {
		t.Errorf("empty: problems %v, warnings %v", problems, warnings)
	}
}
