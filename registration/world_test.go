// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// dice draws random worlds; the same seed gives the same ones.
type dice struct{ *rand.Rand }

func diceOf(seed int) dice { return dice{rand.New(rand.NewPCG(uint64(seed), 1))} }

func pick[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// some returns one or two of the values, without duplicates.
func some[T ~string](d dice, values ...T) []T {
	return slices.Compact(slices.Sorted(slices.Values([]T{pick(d, values...), pick(d, values...)})))
}

func (d dice) rule() admissionregistrationv1.RuleWithOperations {
	r := admissionregistrationv1.RuleWithOperations{
		Operations: some(d, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect, "*"),
		Rule: admissionregistrationv1.Rule{
			APIGroups:   some(d, "", "events.k8s.io", "apps", "extensions", "x", "*"),
			APIVersions: some(d, "v1", "v2", "v1beta1", "*"),
			Resources:   some(d, "pods", "events", "deployments", "namespaces", "things", "*", "*/*", "deployments/*", "*/scale", "things/status", "pods/*"),
		},
	}
	for _, alone := range []func(){
		func() { r.Operations = onlyIf(r.Operations, "*") },
		func() { r.APIGroups = onlyIf(r.APIGroups, "*") },
		func() { r.APIVersions = onlyIf(r.APIVersions, "*") },
		func() { r.Resources = onlyIf(r.Resources, "*/*", "*") },
	} {
		alone()
	}
	if d.IntN(3) == 0 {
		r.Scope = new(pick(d, admissionregistrationv1.NamespacedScope, admissionregistrationv1.ClusterScope, admissionregistrationv1.AllScopes))
	}
	return r
}

// onlyIf leaves a value that must stand alone.
func onlyIf[T ~string](list []T, alone ...T) []T {
	for _, a := range alone {
		if slices.Contains(list, a) {
			return []T{a}
		}
	}
	return list
}

// selector is empty half of the time; else one or two requirements.
func (d dice) selector(keys ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for range pick(d, 0, 0, 1, 1, 2) {
		r := metav1.LabelSelectorRequirement{
			Key:      pick(d, keys...),
			Operator: pick(d, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),
		}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = some(d, "a", "shop", "lab")
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

const metadataName = "kubernetes.io/metadata.name"

func (d dice) webhook(i int) admissionregistrationv1.MutatingWebhook {
	w := admissionregistrationv1.MutatingWebhook{
		Name:                    fmt.Sprintf("w%d.example.com", i),
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://hooks.example.com/w")},
		MatchPolicy:             new(pick(d, admissionregistrationv1.Equivalent, admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)),
		FailurePolicy:           new(pick(d, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)),
		NamespaceSelector:       d.selector("tier", "team", metadataName),
		ObjectSelector:          d.selector("tier", "owner"),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
	for range pick(d, 1, 1, 2, 3) {
		w.Rules = append(w.Rules, d.rule())
	}
	return w
}

func (d dice) requestRules(n int, extra bool) []exempt.Rule {
	maybe := func(values ...string) []string {
		if d.IntN(3) > 0 {
			return nil
		}
		return some(d, values...)
	}
	var list []exempt.Rule
	for i := range n {
		r := exempt.Rule{
			Name:            fmt.Sprintf("rule-%d", i),
			Namespaces:      maybe("shop", "kube-system"),
			Users:           maybe("ann", "bob"),
			Groups:          maybe("dev", "ops"),
			ServiceAccounts: maybe("shop/bot", "shop/*"),
			Resources:       maybe("/pods", "*/*/scale", "apps/deployments/*", "x/*", "/namespaces"),
			Operations:      maybe("CREATE", "DELETE", "CONNECT"),
		}
		if extra {
			r.ExtraKeys = maybe("break-glass")
		}
		if len(exempt.Validate([]exempt.Rule{r}, nil, extra)) == 0 {
			list = append(list, r)
		}
	}
	return list
}

// world is a cluster with its webhooks in both phases, and its API server.
type world struct {
	served  []schema.GroupVersionResource
	api     *apiServer
	cluster *chain.Cluster
	made    Registration
}

func storedNamespaces() map[string]map[string]string {
	return map[string]map[string]string{
		"shop":        {metadataName: "shop", "tier": "a"},
		"lab":         {metadataName: "lab", "tier": "lab", "team": "shop"},
		"kube-system": {metadataName: "kube-system"},
		"plain":       {metadataName: "plain", "team": "a"},
	}
}

func (d dice) served() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, r := range []schema.GroupResource{{Resource: "pods"}, {Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
		{Group: "apps", Resource: "deployments"}, {Group: "extensions", Resource: "deployments"}, {Group: "x", Resource: "things"}, {Group: "x", Resource: "pods"}} {
		for _, version := range []string{"v1", "v2", "v1beta1", "v3"} {
			if d.IntN(3) > 0 {
				all = append(all, r.WithVersion(version))
			}
		}
	}
	all = append(all, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (d dice) world(t *testing.T) *world {
	t.Helper()
	w := &world{served: d.served()}
	w.api = newAPIServer(t, w.served, storedNamespaces())
	mutating, validating := configurations()
	for i := range pick(d, 1, 2, 3, 5, 8) {
		mutating.Webhooks = append(mutating.Webhooks, d.webhook(i))
		v := d.webhook(i)
		validating.Webhooks = append(validating.Webhooks, validatingOf(&v))
	}
	w.cluster = compiled(t, mutating, validating, binding(pick(d, "Enforce", "Warn", "Shadow")))
	w.cluster.Bypass = exempt.Compile(d.requestRules(pick(d, 0, 1, 3), false))
	w.cluster.FailOpen = exempt.Compile(d.requestRules(pick(d, 0, 0, 2), true))
	var err error
	if w.made, err = New(w.cluster, Options{URL: "https://d.example.com"}); err != nil {
		t.Fatal(err)
	}
	return w
}

func configurations() (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	return &admissionregistrationv1.MutatingWebhookConfiguration{TypeMeta: typeMeta("MutatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{TypeMeta: typeMeta("ValidatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: "c"}}
}

// validatingOf is the webhook as a validating one, with all of it that both have.
func validatingOf(w *admissionregistrationv1.MutatingWebhook) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, MatchPolicy: w.MatchPolicy, FailurePolicy: w.FailurePolicy,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, AdmissionReviewVersions: w.AdmissionReviewVersions,
	}
}

// both is a cluster with a webhook of each phase, and its registration.
func both(t *testing.T) (*chain.Cluster, Registration) {
	t.Helper()
	mutating, validating := configurations()
	w := diceOf(1).webhook(0)
	mutating.Webhooks = append(mutating.Webhooks, w)
	validating.Webhooks = append(validating.Webhooks, validatingOf(&w))
	c := compiled(t, mutating, validating)
	made, err := New(c, Options{URL: "https://d.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return c, made
}

// binding puts the first webhooks into a mode.
func binding(mode string) string {
	return "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: first}\nspec: {webhooks: [\"c/w0.*\"], mode: " + mode + "}\n"
}

// compiled is cluster "east" of these manifests: objects, or text.
func compiled(t *testing.T, manifests ...any) *chain.Cluster {
	t.Helper()
	dir := t.TempDir()
	cluster := "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\n" +
		"spec: {authentication: {anonymous: true}, namespaces: {defaultLabels: {tier: x, team: x}}}\n"
	for i, m := range append(manifests, cluster) {
		data, ok := m.(string)
		if !ok {
			out, err := yaml.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			data = string(out)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := registry.New(registry.Settings{Sources: manifest.Directories(dir), Logger: slog.New(slog.DiscardHandler)})
	if problems := r.Load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	return r.Snapshot().Clusters["east"]
}

// request draws a request for a resource that the API server serves.
func (d dice) request(w *world) *sent {
	q := &sent{
		operation: pick(d, codec.Create, codec.Update, codec.Delete, codec.Connect), resource: w.served[d.IntN(len(w.served))], sub: pick(d, "", "", "status", "scale"),
		namespace: pick(d, "", "shop", "lab", "kube-system", "plain"), name: pick(d, "", "it"), user: d.user(),
	}
	some := func() map[string]string {
		l := map[string]string{}
		for _, key := range []string{"tier", "owner", "team"} {
			if d.IntN(2) == 0 {
				l[key] = pick(d, "a", "shop", "lab")
			}
		}
		return l
	}
	if q.operation == codec.Create || q.operation == codec.Update {
		q.labels = some()
	}
	if q.operation == codec.Update || q.operation == codec.Delete {
		q.old = some()
	}
	if q.resource.Resource == "namespaces" {
		d.ofNamespace(q)
	}
	return q
}

// ofNamespace makes q about a Namespace: its name is the request's namespace, and
// the label of the name is right unless the name is to be generated.
func (d dice) ofNamespace(q *sent) {
	q.name = q.namespace
	if q.name == "" && (q.operation != codec.Create || q.sub != "") {
		q.name, q.namespace = "shop", "shop"
	}
	for _, l := range []map[string]string{q.labels, q.old} {
		if l == nil {
			continue
		}
		if l[metadataName] = q.name; q.name == "" {
			l[metadataName] = pick(d, "kube-system", "shop", "forged")
		}
	}
}

func (d dice) user() codec.UserInfo {
	u := codec.UserInfo{Username: []byte(pick(d, "", "ann", "bob", "eve", "system:serviceaccount:shop:bot"))}
	for range d.IntN(3) {
		u.Groups = append(u.Groups, []byte(pick(d, "dev", "ops", "qa")))
	}
	if d.IntN(3) == 0 {
		u.Extra = []codec.ExtraValue{{Key: []byte("break-glass"), Values: [][]byte{[]byte("1")}}}
	}
	return u
}
