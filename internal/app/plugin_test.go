// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

// scripted is the configuration of a plugin that does what a test says.
type scripted struct {
	Deny     string `json:"deny,omitempty"`     // the reason
	Again    string `json:"again,omitempty"`    // the reason of a denial when it is asked again
	Fail     string `json:"fail,omitempty"`     // the error
	Panic    bool   `json:"panic,omitempty"`    // with the name of the pod
	Hang     bool   `json:"hang,omitempty"`     // until the test is over
	Annotate string `json:"annotate,omitempty"` // a key, for the name of the pod
	Count    bool   `json:"count,omitempty"`    // denies, with how often it was asked

	asked atomic.Int64
}

// sum counts what is allowed, and warns of it.
type sum struct{ asked atomic.Int64 }

func (s *sum) Validate(context.Context, *plugin.Attributes) (plugin.Answer, error) {
	return plugin.Answer{Warnings: []string{fmt.Sprintf("counted %d", s.asked.Add(1))}}, nil
}

func (s *sum) Undo(context.Context, *plugin.Attributes) { s.asked.Add(-1) }

// hanging is closed when plugins may return that hang.
var hanging atomic.Pointer[chan struct{}]

func (s *scripted) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, err := plugin.Decode[corev1.Pod](a.Object())
	switch {
	case err != nil:
		return plugin.Answer{}, err
	case s.Panic:
		panic(pod.Name)
	case s.Hang:
		<-*hanging.Load()
	case s.Fail != "":
		return plugin.Answer{}, errors.New(s.Fail)
	case s.Deny != "":
		return a.Forbid("%s", s.Deny), nil
	case s.Again != "" && a.Reinvocation():
		return a.Forbid("%s", s.Again), nil
	case s.Annotate != "":
		return plugin.Answer{Annotations: map[string]string{s.Annotate: pod.Name}}, nil
	case s.Count:
		return a.Forbid("asked %d times", s.asked.Add(1)), nil
	}
	return plugin.Answer{}, nil
}

func (s *scripted) Mutate(ctx context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	return s.Validate(ctx, a)
}

func compiledIn() plugin.Set {
	own := plugin.New("Scripted", nil, func(s *scripted) (any, field.ErrorList) { return s, nil })
	own.Rules = append(own.Rules, plugin.Rule("*", "*", []string{"*"}, "*"))
	summing := plugin.New("Sum", own.Rules, func(s *sum) (any, field.ErrorList) { return s, nil })
	authorizing := plugin.New("Authorizing", own.Rules, func(*struct{}) (any, field.ErrorList) { return authorizing{}, nil })
	authorizing.Authorizes = true
	listing := plugin.New("Lister", own.Rules, func(*lister) (any, field.ErrorList) { return lister{}, nil })
	listing.Lists = []schema.GroupVersionResource{configMaps}
	return must(plugin.NewSet(kubernetes.Plugins(own, summing, authorizing, listing)...))
}

// pluginWires are the fields of Plugin.spec.
func pluginWires() []wire {
	const deny = "plugin: Scripted, configuration: {deny: no says the plugin}"
	const says = `admission plugin \"Scripted\" denied the request: pods \"p\" is forbidden: no says the plugin`
	unasked := func(field, value string) wire {
		return wire{field: field, value: "{" + deny + ", " + field + ": " + value + "}", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{})
		}}
	}
	return []wire{
		{field: "plugin", value: "plugin: AlwaysDeny", observe: func(_ *testing.T, r *rig) {
			r.start().denies(question{}, `admission plugin \"AlwaysDeny\" denied the request: pods \"p\" is forbidden: admission control is denying all modifications`)
		}},
		{field: "configuration", value: "{" + deny + "}", observe: func(_ *testing.T, r *rig) { r.start().denies(question{}, says) }},
		{field: "clusterSelector", value: "{" + deny + ", clusterSelector: {matchLabels: {name: west}}}", observe: func(_ *testing.T, r *rig) {
			r.cluster("west", "")
			r.start().allows(question{})
			r.denies(question{cluster: "west"}, says)
		}},
		{field: "phases", value: "{" + deny + ", phases: [Mutating]}", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{})
			r.denies(question{phase: "mutate"}, says)
		}},
		{field: "stage", value: "{" + deny + ", stage: Transactional}", observe: func(t *testing.T, r *rig) {
			r.start().denies(question{}, says)
			r.play((*call).deny)
			if got := r.denies(question{}, "says policy"); strings.Contains(got.text, "says the plugin") {
				t.Error("it is asked although a webhook has denied")
			}
		}},
		{field: "order", value: "{" + deny + ", order: 1}", observe: func(_ *testing.T, r *rig) {
			r.object("Plugin", "zebra", "{plugin: Scripted, configuration: {deny: first}}")
			r.start().denies(question{phase: "mutate"}, "is forbidden: first")
		}},
		{field: "mode", value: "{" + deny + ", mode: Warn}", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{}, "would be denied if enforced: "+says)
		}},
		{field: "failurePolicy", value: "{plugin: Scripted, configuration: {fail: the store is down}, failurePolicy: Ignore}", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{}, `failed calling plugin \"Scripted\" (BadAnswer`, "the request was not checked by it")
		}},
		{field: "timeout", value: "{plugin: Scripted, configuration: {hang: true}, timeout: 50ms}", observe: func(_ *testing.T, r *rig) {
			r.hangingPlugins()
			r.start().denies(question{}, `failed calling plugin \"Scripted\": Timeout after `, `: no answer in time`)
		}},
		{field: "reinvocationPolicy", value: "{plugin: Scripted, configuration: {again: asked again}, reinvocationPolicy: Never}", observe: func(_ *testing.T, r *rig) {
			relabelled(r)
			r.start().allows(question{phase: "mutate"})
		}},
		unasked("rules", `[{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`),
		{field: "matchPolicy", value: "{" + deny + `, matchPolicy: Exact, rules: [{operations: ["*"], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]}`, observe: func(_ *testing.T, r *rig) {
			r.register() // which would want it in another version
			r.start().allows(question{body: []byte(converted)})
			r.object("Plugin", "plug", "{"+deny+`, rules: [{operations: ["*"], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]}`)
			r.eventually("what is equivalent is asked about", func() bool { return !r.ask(question{body: []byte(converted)}).allowed })
		}},
		unasked("namespaceSelector", "{matchLabels: {kubernetes.io/metadata.name: other}}"),
		unasked("objectSelector", "{matchLabels: {app: web}}"),
		unasked("matchConditions", `[{name: other, expression: "request.name == 'other'"}]`),
	}
}

// converted came as another version of what it is about.
const converted = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},` +
	`"resource":{"group":"apps","version":"v1","resource":"deployments"},"requestKind":{"group":"extensions","version":"v1beta1","kind":"Deployment"},` +
	`"requestResource":{"group":"extensions","version":"v1beta1","resource":"deployments"},"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},` +
	`"object":{"metadata":{"name":"web"}}}}`

// relabelled has a webhook change the object.
func relabelled(r *rig) {
	r.register(hook{name: "policy", mutating: true})
	r.play(func(c *call) {
		c.say(`"allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7ImEiOiJiIn19XQ=="`)
	})
}

// hangingPlugins has plugins return at the end of the test that hang.
func (r *rig) hangingPlugins() {
	over := make(chan struct{})
	hanging.Store(&over)
	r.t.Cleanup(func() { close(over) })
}

// A plugin is asked again when a webhook has changed the object after it.
func TestPluginIsReinvoked(t *testing.T) {
	r := newRig(t)
	relabelled(r)
	r.object("Plugin", "plug", "{plugin: Scripted, configuration: {again: asked again}}")
	r.start().denies(question{phase: "mutate"}, "is forbidden: asked again")
}

// K3 A plugin that panics is a failed call: the process lives, and nothing of the object is
// told.
func TestK3PluginPanics(t *testing.T) {
	r := newRig(t)
	r.object("Plugin", "plug", "{plugin: Scripted, configuration: {panic: true}}")
	r.start()
	for range 3 {
		got := r.denies(question{name: "swordfish"}, `failed calling plugin \"Scripted\": Panic after `, `: panic while calling: a value of type string`)
		if strings.Count(got.text, "swordfish") > 0 {
			t.Errorf("it tells of the object: %s", got.text)
		}
	}
}

// K4 A plugin that hangs times out, for the cluster whose calls they are and, when it has
// too many of them, is shed for that; other plugins answer, and the process ends.
func TestK4PluginHangs(t *testing.T) {
	r := newRig(t)
	r.hangingPlugins()
	r.object("Plugin", "plug", "{plugin: Scripted, configuration: {hang: true}, timeout: 20ms, failurePolicy: Ignore}")
	r.object("Plugin", "sound", "{plugin: Scripted, configuration: {annotate: pod}}")
	r.start()
	client := r.clientAs("east")
	r.eventually("calls are shed", func() bool {
		got := r.allows(question{client: client, name: "here"}, `"Scripted.pod":"here"`)
		return strings.Contains(got.text, "(Shed")
	})
}

// K5 What a plugin remembers outlives a reload that does not touch its object; one that
// changes its configuration begins anew.
func TestK5PluginKeepsItsState(t *testing.T) {
	r := newRig(t)
	r.object("Plugin", "plug", "{plugin: Scripted, configuration: {count: true}}")
	r.start().denies(question{}, "asked 1 times")
	reload := func(change func()) {
		before := must(r.process.status(http.DefaultClient)).Snapshot.Hash
		change()
		r.eventually("it is loaded", func() bool { return must(r.process.status(http.DefaultClient)).Snapshot.Hash != before })
	}
	reload(func() { r.object("Plugin", "plug", "{plugin: Scripted, configuration: {count: true}, timeout: 2s}") })
	r.denies(question{}, "asked 2 times")
	reload(func() { r.object("Plugin", "plug", "{plugin: Scripted, configuration: {count: true, again: never}}") })
	r.denies(question{}, "asked 1 times")
}

// K8 PodSecurity knows the labels of the namespace from the cluster's source, and the user
// reads what kube-apiserver says.
func TestK8PodSecurityOfACluster(t *testing.T) {
	r := newRig(t)
	r.cluster("east", "namespaces: {labels: {shop: {pod-security.kubernetes.io/enforce: baseline, pod-security.kubernetes.io/warn: restricted}, other: {}}}")
	r.object("Plugin", "security", "{plugin: PodSecurity}")
	r.start().denies(question{body: []byte(strings.Replace(pod, "SPEC", `{"hostNetwork":true}`, 1))},
		`admission plugin \"PodSecurity\" denied the request: pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)`,
		`"PodSecurity.enforce-policy":"baseline:latest"`)
	r.allows(question{body: []byte(strings.Replace(pod, "SPEC", `{"containers":[{"name":"a"}]}`, 1))}, `would violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false`)
	r.allows(question{body: []byte(strings.Replace(strings.Replace(pod, "SPEC", `{"hostNetwork":true}`, 1), "shop", "other", 1))}, `"PodSecurity.enforce-policy":"privileged:latest"`)
}

// pod is a review of the creation of a pod.
const pod = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"name":"p","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"p"},"spec":SPEC}}}`

// K9 A plugin of the stage Transactional takes back what it did for a request that is not
// stored.
func TestK9PluginTakesBack(t *testing.T) {
	r := newRig(t)
	r.object("Plugin", "sum", "{plugin: Sum, stage: Transactional}")
	r.object("Plugin", "after", "{plugin: Scripted, configuration: {fail: down}, stage: Transactional, order: 1, matchConditions: [{name: some, expression: \"request.name == 'denied'\"}]}")
	r.start().allows(question{}, "counted 1")
	r.denies(question{name: "denied"})
	r.eventually("what was denied is taken back", func() bool {
		r.play((*call).deny) // before the stage: it is not asked
		r.denies(question{})
		r.play((*call).allow)
		got := r.allows(question{body: []byte(strings.Replace(question{}.review(), `"object":`, `"dryRun":true,"object":`, 1))})
		return strings.Contains(got.text, "counted 2")
	})
	r.eventually("a dry run is taken back", func() bool { return strings.Contains(r.allows(question{}).text, "counted 2") })
}

// The status and the metrics have a plugin beside the webhooks.
func TestPluginIsSeen(t *testing.T) {
	r := newRig(t)
	r.object("Plugin", "plug", "{plugin: Scripted, configuration: {deny: never}, mode: Warn}")
	r.start().allows(question{})
	var seen []string
	for _, w := range must(r.process.status(http.DefaultClient)).Webhooks {
		if w.Configuration == "plug" {
			seen = append(seen, fmt.Sprint(w.Kind, " ", w.Name, " ", w.Phase, " ", w.Stage, " ", w.Mode, " ", w.Target))
		}
	}
	if got := strings.Join(seen, "; "); got != "plugin Scripted mutate Policy Warn ; plugin Scripted validate Policy Warn " {
		t.Errorf("the status has %q", got)
	}
	want := `configuration="plug",`
	r.eventually("the metrics have it", func() bool { return strings.Contains(r.process.scrape(), want) })
}
