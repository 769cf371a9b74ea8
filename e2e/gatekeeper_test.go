// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"
)

// gatekeeper is Gatekeeper with one cluster's policies: it watches the API of the
// cluster that it runs for, as it does in a cluster.
type gatekeeper struct {
	cluster *cluster
	process *process.Process
	address string // of its webhooks
}

// gatekeeperManifest is what Gatekeeper is published with.
type gatekeeperManifest struct {
	install  string // what it needs in a cluster: its namespace, CRDs and rights
	webhooks string // its webhook configurations
}

// installed are the kinds that a cluster needs of the manifest. The rest runs it
// in pods, which there are none of here.
var installed = regexp.MustCompile(`(?m)^kind: (Namespace|CustomResourceDefinition|ServiceAccount|Role|ClusterRole|RoleBinding|ClusterRoleBinding)$`)

var webhookConfigurations = regexp.MustCompile(`(?m)^kind: (Validating|Mutating)WebhookConfiguration$`)

// readGatekeeperManifest reads the manifest as it lies in Gatekeeper's module.
func readGatekeeperManifest(t *testing.T) gatekeeperManifest {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(moduleDir(t, "gatekeeper", "github.com/open-policy-agent/gatekeeper/v3"), "deploy/gatekeeper.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var install, webhooks []string
	for _, document := range strings.Split(string(data), "\n---\n") {
		switch {
		case installed.MatchString(document):
			install = append(install, document)
		case webhookConfigurations.MatchString(document):
			webhooks = append(webhooks, document)
		}
	}
	if len(webhooks) != 2 {
		t.Fatalf("%d webhook configurations in Gatekeeper's manifest, want 2", len(webhooks))
	}
	return gatekeeperManifest{strings.Join(install, "\n---\n"), strings.Join(webhooks, "\n---\n")}
}

var serviceReference = regexp.MustCompile(`(?m)^    service:\n      name: gatekeeper-webhook-service\n      namespace: gatekeeper-system\n      path: (\S+)$`)

// direct is the manifest for a cluster whose API server runs beside Gatekeeper and
// not before a cluster's network: an address instead of the Service, and the CA
// that Gatekeeper would have written there.
func (m gatekeeperManifest) direct(t *testing.T, address string) string {
	t.Helper()
	if n := len(serviceReference.FindAllString(m.webhooks, -1)); n != 3 {
		t.Fatalf("%d references of Gatekeeper's Service, want 3", n)
	}
	ca := base64.StdEncoding.EncodeToString(shared.pki.PEM)
	return serviceReference.ReplaceAllString(m.webhooks, "    url: https://"+address+"$1\n    caBundle: "+ca)
}

// failing is the manifest with failurePolicy Fail everywhere.
func (m gatekeeperManifest) failing() gatekeeperManifest {
	m.webhooks = strings.ReplaceAll(m.webhooks, "failurePolicy: Ignore", "failurePolicy: Fail")
	return m
}

// gatekeeperBinding says where the Service of the manifest is.
const gatekeeperBinding = `apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: gatekeeper}
spec:
  webhooks: ["gatekeeper-validating-webhook-configuration/*", "gatekeeper-mutating-webhook-configuration/*"]
  endpoints: [{address: %q, caFile: %q}]
`

// gadgets are custom resources of this test's own: what another test has made is
// still being removed.
var gadgets = strings.NewReplacer("widget", "gadget", "Widget", "Gadget").Replace(widgets)

// startGatekeeper installs Gatekeeper and policies in a cluster, and returns when
// all of them hold.
func startGatekeeper(t *testing.T, c *cluster, m gatekeeperManifest) *gatekeeper {
	t.Helper()
	for name, labels := range gatekeeperNamespaces {
		c.namespaceOf(t, name, labels)
	}
	c.apply(t, gadgets)
	c.apply(t, m.install)
	// Where Gatekeeper's configurations select nothing.
	c.asks = "gatekeeper-system"
	t.Cleanup(func() { c.asks = "default" })
	c.removeGroups(t, "gatekeeper.sh")
	c.awaitKind(t, "templates.gatekeeper.sh", "v1", "ConstraintTemplate")
	c.apply(t, gatekeeperPolicies(t, "templates.yaml"))
	g := &gatekeeper{cluster: c}
	g.start(t)
	constraints, mutators := documents(t, gatekeeperPolicies(t, "constraints.yaml")), documents(t, gatekeeperPolicies(t, "mutators.yaml"))
	for _, o := range append(constraints, mutators...) {
		c.awaitKind(t, o.GroupVersionKind().Group, o.GroupVersionKind().Version, o.GetKind())
	}
	c.apply(t, gatekeeperPolicies(t, "constraints.yaml"))
	c.apply(t, gatekeeperPolicies(t, "mutators.yaml"))
	g.awaitEnforced(t, "constraintpodstatuses", len(constraints))
	g.awaitEnforced(t, "mutatorpodstatuses", len(mutators)-1) // one of them is the Config
	return g
}

func gatekeeperPolicies(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/gatekeeper", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// start starts the process with the flags of Gatekeeper's Deployments, as its
// ServiceAccount, on loopback.
func (g *gatekeeper) start(t *testing.T) {
	t.Helper()
	c := g.cluster
	dir := filepath.Join(c.dir, "gatekeeper")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	serving, err := shared.pki.Issue(pki.OnLoopback("tls", "gatekeeper-webhook-service.gatekeeper-system.svc"))
	if err != nil {
		t.Fatal(err)
	}
	if err := serving.Write(dir, "tls"); err != nil {
		t.Fatal(err)
	}
	token, err := c.client.CoreV1().ServiceAccounts("gatekeeper-system").CreateToken(t.Context(), "gatekeeper-admin", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write("gatekeeper/kubeconfig", fmt.Sprintf(kubeconfig, c.config.Host, c.config.CAFile, token.Status.Token)); err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	health, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	g.address = "127.0.0.1:" + port
	g.process, err = start(dir, shared.programs.gatekeeper,
		"--kubeconfig", "kubeconfig", "--host", "127.0.0.1", "--port", port, "--health-addr", "127.0.0.1:"+health,
		"--metrics-backend", "opentelemetry", "--otlp-endpoint", "127.0.0.1:1", // the default listens on all addresses
		"--cert-dir", dir, "--disable-cert-rotation", "--debug-use-fake-pod",
		"--operation", "webhook,mutation-webhook,generate,status,mutation-status",
		"--exempt-namespace", "gatekeeper-system", "--exempt-namespace", "gk-ignored",
		"--disable-opa-builtin", "{http.send}", "--log-level", "WARNING")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: Gatekeeper's log ends:\n%s", c.name, g.process.Tail())
		}
		g.process.Kill()
	})
	if err := g.process.Until("being ready", func() bool { return answers("http://127.0.0.1:" + health + "/readyz") }); err != nil {
		t.Fatal(err)
	}
}

// awaitEnforced waits until Gatekeeper's status of n policies is that they hold.
func (g *gatekeeper) awaitEnforced(t *testing.T, statuses string, n int) {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "status.gatekeeper.sh", Version: "v1beta1", Resource: statuses}
	eventually(t, g.cluster.name+": Gatekeeper enforces its policies", func() error {
		list, err := g.cluster.objects.Resource(resource).Namespace("gatekeeper-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		enforced := 0
		for _, o := range list.Items {
			if on, _, _ := unstructured.NestedBool(o.Object, "status", "enforced"); on {
				enforced++
			} else {
				err = errors.Join(err, fmt.Errorf("%v", o.Object["status"]))
			}
		}
		if enforced != n {
			return errors.Join(fmt.Errorf("%d of %d", enforced, n), err)
		}
		return nil
	})
}

// awaitKind waits until objects of a kind can be made.
func (c *cluster) awaitKind(t *testing.T, group, version, kind string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s: %s of %s/%s is served", c.name, kind, group, version), func() error {
		list, err := c.client.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			if r.Kind == kind {
				return nil
			}
		}
		return errors.New("it is not there")
	})
}

// removeGroups removes the kinds of a domain at the end of the test, also those
// that somebody else has made.
func (c *cluster) removeGroups(t *testing.T, domain string) {
	definitions := c.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() {
		ctx := context.Background() // the test's has ended
		list, err := definitions.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			return
		}
		for _, o := range list.Items {
			if group, _, _ := unstructured.NestedString(o.Object, "spec", "group"); strings.HasSuffix(group, domain) {
				if err := definitions.Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
	})
}

// pair is one request with what came of it in both clusters.
type pair struct {
	request       request
	alone, behind verdict
}

// pairOfGatekeepers are two Gatekeepers with the same policies, each with a cluster
// of its own: one is called directly, one through the dispatcher.
type pairOfGatekeepers struct {
	manifest      gatekeeperManifest
	alone, behind *gatekeeper

	compared int            // passes
	rows     map[string]int // how often which explained a difference; "": there was none
}

// exchange makes the objects that requests need, arranges the webhooks, and sends
// each request to both clusters.
func (g *pairOfGatekeepers) exchange(t *testing.T, requests []request, arrange func()) []pair {
	t.Helper()
	both := []*cluster{shared.alone, shared.east}
	for _, c := range both {
		c.seed(t, requests)
	}
	arrange()
	pass := fmt.Sprintf("pass-%d-", asked.Add(1))
	idOf := func(i int) string { return fmt.Sprint(pass, i) }
	answers := make([][2]answer, len(requests))
	for i, r := range requests {
		var errs [2]error
		done := make(chan struct{})
		for j, c := range both {
			go func() {
				defer func() { done <- struct{}{} }()
				answers[i][j], errs[j] = c.send(t, r, idOf(i))
			}()
		}
		<-done
		<-done
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}
	for j, c := range both {
		eventually(t, c.name+": all requests are in the audit log", func() error {
			audits, err := c.audits(pass)
			for i := range requests {
				audit, ok := audits[idOf(i)]
				if !ok {
					return errors.Join(fmt.Errorf("%s is not", requests[i].name), err)
				}
				answers[i][j].audit = audit
			}
			return err
		})
	}
	pairs := make([]pair, len(requests))
	for i, r := range requests {
		pairs[i] = pair{r, answers[i][0].verdict(), answers[i][1].verdict()}
	}
	return pairs
}

// seed makes what must be there before, once no webhook of the pass before has a
// part in it any more.
func (c *cluster) seed(t *testing.T, requests []request) {
	t.Helper()
	s := &script{t: t, pass: asked.Add(1)}
	s.dryRun(s.create("what Gatekeeper denies, and mutates", badMap, "gk-plain"))
	eventually(t, c.name+": no webhook is called", func() error {
		a, err := c.send(t, s.all[0], "seed")
		if annotations, _, _ := unstructured.NestedMap(a.object, "metadata", "annotations"); err == nil && (!a.allowed() || annotations != nil) {
			return fmt.Errorf("the answer is %v, %v", a.status, a.object)
		}
		return err
	})
	for _, r := range requests {
		for _, o := range r.before {
			path, _ := collection(o)
			a, err := c.send(t, request{method: "POST", path: path, contentType: "application/json", body: o.Object}, "seed")
			if err != nil || !a.allowed() {
				t.Fatalf("%s: make %s for %q: %v, %v", c.name, path, r.name, a.status, err)
			}
		}
	}
}

// arrange registers Gatekeeper in both clusters: directly, and through the
// dispatcher, which knows namespaces from the cluster and has a failOpen rule.
func (g *pairOfGatekeepers) arrange(t *testing.T, m gatekeeperManifest) *dispatcher {
	t.Helper()
	shared.alone.register(t, m.direct(t, g.alone.address)+"\n---\n"+readiness)
	east, _, _ := strings.Cut(watched(t, shared.east), "\n---\n")
	east = strings.Replace(east, "spec: {", "spec: {failOpen: {rules: [{name: break-glass, groups: [break-glass]}]}, ", 1)
	return dispatchAs(t, east, []*cluster{shared.east}, m.webhooks, fmt.Sprintf(gatekeeperBinding, g.behind.address, shared.path("ca.crt")))
}

// TestGatekeeper puts Gatekeeper with its own configurations, unchanged, behind
// the dispatcher, and compares with a cluster that calls it directly: first what
// it decides, then what its outage does, then what the dispatcher's does.
func TestGatekeeper(t *testing.T) {
	progress("%s", t.Name())
	manifest := readGatekeeperManifest(t)
	g := pairOfGatekeepers{manifest: manifest, alone: startGatekeeper(t, shared.alone, manifest), behind: startGatekeeper(t, shared.east, manifest), rows: map[string]int{}}
	progress("Gatekeeper runs for two clusters")
	t.Run("both up", g.compareRequests)
	g.alone.process.Kill()
	g.behind.process.Kill()
	for _, m := range []struct {
		policy   string
		manifest gatekeeperManifest
	}{{"as published", manifest}, {"Fail", manifest.failing()}} {
		t.Run("Gatekeeper down, "+m.policy, func(t *testing.T) {
			g.compare(t, g.exchange(t, gatekeeperRequests(t), func() { g.arrange(t, m.manifest) }))
		})
		t.Run("dispatcher down, "+m.policy, func(t *testing.T) {
			pairs := g.exchange(t, gatekeeperRequests(t), func() {
				d := g.arrange(t, m.manifest)
				shared.front.point("")
				d.process.Kill()
			})
			for _, p := range pairs {
				t.Run(p.request.name, func(t *testing.T) { checkParity(t, p) })
			}
		})
	}
	for _, d := range differences {
		t.Logf("%4d verdicts differ by the row %q", g.rows[d.row], d.row)
		if g.rows[d.row] == 0 && g.compared == 3 {
			t.Errorf("no request shows the row %q of docs/semantics.md", d.row)
		}
	}
}

// compareRequests compares what Gatekeeper decides. What it did not answer in time
// in one of the clusters is sent again: its own configuration gives it a second.
func (g *pairOfGatekeepers) compareRequests(t *testing.T) {
	const attempts = 3
	var answered []pair
	for attempt := 1; attempt <= attempts; attempt++ {
		var unanswered []pair
		t.Run(fmt.Sprintf("attempt %d", attempt), func(t *testing.T) {
			requests := gatekeeperRequests(t)
			if len(answered) > 0 {
				requests = slices.DeleteFunc(requests, func(r request) bool {
					return slices.ContainsFunc(answered, func(p pair) bool { return p.request.name == r.name })
				})
			}
			for _, p := range g.exchange(t, requests, func() { g.arrange(t, g.manifest) }) {
				if attempt < attempts && (p.alone.unanswered() || p.behind.unanswered() && !p.behind.dispatcherFailed()) {
					unanswered = append(unanswered, p)
				} else {
					answered = append(answered, p)
				}
			}
		})
		if t.Failed() || len(unanswered) == 0 {
			break
		}
		for _, p := range unanswered {
			t.Logf("not answered in time: %s:\n%s\n%s", p.request.name, p.alone, p.behind)
		}
	}
	g.compare(t, answered)
	var denied, mutated, warned int
	for _, p := range answered {
		denied += count(strings.Contains(strings.Join(p.alone.Denials, ""), "gatekeeper.sh\" denied the request"))
		mutated += count(len(p.alone.Mutated) > 0)
		warned += count(len(p.alone.Warnings) > 0)
	}
	progress("called directly, Gatekeeper denies %d, mutates %d, warns of %d", denied, mutated, warned)
	if denied < 75 || mutated < 75 || warned < 75 {
		t.Error("fewer than 75 of each: the policies do not hold, and the comparison shows nothing")
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// compare checks each verdict behind the dispatcher against the other.
func (g *pairOfGatekeepers) compare(t *testing.T, pairs []pair) {
	t.Helper()
	equal := 0
	for _, p := range pairs {
		t.Run(p.request.name, func(t *testing.T) {
			row, ok := explained(p.request, p.alone, p.behind)
			if !ok {
				t.Errorf("%s %s: the verdicts differ:\n%s", p.request.method, p.request.path, diff.Diff(p.alone, p.behind))
			}
			if ok && row == "" {
				equal++
			}
			g.rows[row]++
		})
	}
	g.compared++
	progress("%d requests, %d verdicts are equal", len(pairs), equal)
}

// checkParity checks that with the dispatcher down a cluster decides as with all
// its webhooks down, where neither bypasses nor failOpen rules hold.
func checkParity(t *testing.T, p pair) {
	t.Helper()
	want := p.alone.allowed() || excepted(p)
	switch {
	case p.behind.allowed() != want:
		t.Errorf("%s %s: allowed is %t, with all webhooks down and the same bypasses it is %t:\n%s", p.request.method, p.request.path, !want, want, p.behind)
	case p.behind.allowed() && p.alone.allowed() && !reflect.DeepEqual(p.alone.Object, p.behind.Object):
		t.Errorf("%s %s: the object differs:\n%s", p.request.method, p.request.path, diff.Diff(p.alone.Object, p.behind.Object))
	}
}
