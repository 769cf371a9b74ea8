// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// limits is a configuration with fields, of which some are refused.
type limits struct {
	Limits []struct {
		QPS  int    `json:"qps"`
		Type string `json:"type,omitempty"`
	} `json:"limits"`
	Panic bool `json:"panic,omitempty"`
}

// compiledIn are the plugins of kube-apiserver, one with a configuration that only
// validates, and one that is nothing.
func compiledIn(t testing.TB) plugin.Set {
	t.Helper()
	limited := plugin.New("Limited", nil, func(l *limits) (any, field.ErrorList) {
		if l.Panic {
			panic("no")
		}
		var errs field.ErrorList
		for i, limit := range l.Limits {
			if limit.QPS <= 0 {
				errs = append(errs, field.Invalid(field.NewPath("limits").Index(i).Child("qps"), limit.QPS, "must be positive"))
			}
		}
		return validator{}, errs
	})
	limited.Rules = append(limited.Rules, plugin.Rule("", "v1", []string{"events"}, "CREATE"))
	listing := plugin.New("Listing", nil, func(*struct{}) (any, field.ErrorList) { return validator{}, nil })
	listing.Rules, listing.Lists = limited.Rules, []schema.GroupVersionResource{
		{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, {Version: "v1", Resource: "limitranges"},
	}
	nothing := plugin.New("Nothing", limited.Rules, func(*struct{}) (any, field.ErrorList) { return 1, nil })
	authorized := plugin.New("Authorized", limited.Rules, func(*struct{}) (any, field.ErrorList) { return validator{}, nil })
	authorized.Authorizes = true
	set, err := plugin.NewSet(kubernetes.Plugins(limited, listing, nothing, authorized)...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

type validator struct{ plugin.Validator }

// K2 Plugins are before webhooks of their stage and order; among each other they are in
// kube-apiserver's order, then in that of names.
func TestK2OrderOfPlugins(t *testing.T) {
	const objects = `
-- cluster.yaml --
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {anonymous: true}}
-- plugins.yaml --
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: a}, spec: {plugin: AlwaysDeny}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: c}, spec: {plugin: AlwaysPullImages}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: b}, spec: {plugin: AlwaysPullImages}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: l}, spec: {plugin: Limited}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: first}, spec: {plugin: Limited, order: -1}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: beside}, spec: {plugin: AlwaysDeny, stage: Validating}}
---
{apiVersion: dispatcher.dev/v1alpha1, kind: Plugin, metadata: {name: last}, spec: {plugin: AlwaysDeny, stage: Transactional, phases: [Validating]}}
-- webhooks.yaml --
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: aa}
webhooks:
- {name: w.example.com, clientConfig: {url: "https://w.example.com"}, sideEffects: None, admissionReviewVersions: [v1],
   rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
`
	h := home{t, t.TempDir()}
	h.write(txtar.Parse([]byte(objects)).Files)
	compiled, problems, _ := h.compile(compile.Options{Plugins: compiledIn(t)})
	if compiled == nil {
		t.Fatal(problems)
	}
	for phase, want := range map[chain.Phase]string{
		chain.Validating: "first b c l a beside aa last",
		chain.Mutating:   "b c a beside",
	} {
		var names []string
		for _, e := range compiled.Clusters["east"].Chain(phase).Webhooks {
			names = append(names, e.Configuration)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", phase, got, want)
		}
	}
}
