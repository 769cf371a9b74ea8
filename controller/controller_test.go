// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/mirror"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	isTrue    = metav1.ConditionTrue
	isFalse   = metav1.ConditionFalse
	isUnknown = metav1.ConditionUnknown
)

func has(keys ...string) func(*mirror.Decision) bool {
	return func(d *mirror.Decision) bool {
		accepted := map[string]bool{}
		for i := range d.Objects {
			accepted[d.Objects[i].Key] = d.Objects[i].Refused == nil
		}
		for _, key := range keys {
			if !accepted[key] {
				return false
			}
		}
		return true
	}
}

// What is good is accepted and programmed, what is at fault says where, and a version that
// is at fault leaves the one before in force.
func TestConditions(t *testing.T) {
	r := newRig(t)
	m := r.management
	m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: good}\nspec: {authentication: {certificate: {commonNames: [good]}}}")
	m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bad}\nspec: {authentication: {}}")
	m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lost}\nspec: {authentication: {certificate: {commonNames: [lost], caSecretRef: {name: absent}}}}")
	m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: also-good}\nspec: {authentication: {certificate: {commonNames: [good]}}}")
	m.put(configured("policies", "pods"))
	c, _ := r.start()
	r.decided(c, has("Cluster/good", "WebhookConfiguration/policies"))
	m.awaits("clusters", "good", v1alpha1.ConditionAccepted, isTrue, "Accepted")
	m.awaits("clusters", "good", v1alpha1.ConditionResolvedRefs, isTrue, "ResolvedRefs")
	if said := m.awaits("clusters", "good", v1alpha1.ConditionProgrammed, isTrue, "Programmed"); said != "2/2 replicas" {
		t.Error(said)
	}
	if said := m.awaits("clusters", "bad", v1alpha1.ConditionAccepted, isFalse, mirror.ReasonInvalid); !strings.HasPrefix(said, "spec.authentication: Required value") {
		t.Error(said)
	}
	m.awaits("clusters", "bad", v1alpha1.ConditionResolvedRefs, isTrue, "ResolvedRefs")
	m.awaits("clusters", "bad", v1alpha1.ConditionProgrammed, isFalse, "NotAccepted")
	if said := m.awaits("clusters", "also-good", v1alpha1.ConditionAccepted, isFalse, mirror.ReasonConflict); !strings.Contains(said, "Cluster/") {
		t.Error(said)
	}
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs} {
		if said := m.awaits("clusters", "lost", kind, isFalse, mirror.ReasonUnresolved); !strings.Contains(said, "there is no Secret absent") {
			t.Error(said)
		}
	}
	m.awaits("webhookconfigurations", "policies", v1alpha1.ConditionReachable, isTrue, "Reachable")
	if c := m.condition("clusters", "good", v1alpha1.ConditionNamespacesSynced); c != nil {
		t.Errorf("its namespaces are nobody's: %+v", c)
	}
	m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: good}\nspec: {authentication: {}}")
	if said := m.awaits("clusters", "good", v1alpha1.ConditionAccepted, isFalse, mirror.ReasonInvalid); !strings.Contains(said, "last accepted version stays") {
		t.Error(said)
	}
	if c := m.condition("clusters", "good", v1alpha1.ConditionAccepted); c.ObservedGeneration != 2 {
		t.Errorf("observedGeneration is %d", c.ObservedGeneration)
	}
	var registry v1alpha1.RegistryStatus
	until(t, "the Registry counts", func() bool { m.status("registries", "registry", &registry); return registry.Refused == 4 })
}

// The replicas say what is programmed, reachable, synced, held back and quarantined.
func TestFleet(t *testing.T) {
	r := newRig(t)
	m, w := r.management, newWorkload(t)
	m.put(w.cluster("east", "Off"))
	m.put(configured("policies", "pods"))
	c, _ := r.start()
	first := r.decided(c, has("Cluster/east", "WebhookConfiguration/policies"))
	m.awaits("webhookconfigurations", "policies", v1alpha1.ConditionProgrammed, isTrue, "Programmed")
	if c := m.condition("clusters", "east", v1alpha1.ConditionRegistrationCurrent); c != nil {
		t.Errorf("with Off nobody looks: %+v", c)
	}
	m.awaits("clusters", "east", v1alpha1.ConditionNamespacesSynced, isUnknown, reasonNoReplicas)

	m.put(configured("policies", "pods", "services"))
	if said := m.awaits("webhookconfigurations", "policies", v1alpha1.ConditionProgrammed, isFalse, reasonPending); said != "0/2 replicas" {
		t.Error(said)
	}
	m.awaits("clusters", "east", v1alpha1.ConditionProgrammed, isTrue, "Programmed") // it is in the generation before, too
	var second string
	until(t, "a second generation", func() bool { second = c.view().decision.Generation; return second != first })
	r.replicas.serve(first, map[string]any{"mirror": map[string]any{"next": map[string]any{"generation": second, "lost": []string{"every Plugin"}}}}, 1)
	r.replicas.serve(second, map[string]any{
		"pending":  []any{map[string]any{"webhook": "policies/a.example.com", "reason": "its host is not found"}},
		"clusters": []any{map[string]any{"name": "east", "namespaces": map[string]any{"synced": true, "stale": true, "error": "the API does not answer in time"}}},
	}, 0)
	if said := m.awaits("webhookconfigurations", "policies", v1alpha1.ConditionProgrammed, isFalse, "HeldBack"); !strings.HasPrefix(said, "1/2 replicas") {
		t.Error(said)
	}
	if said := m.awaits("webhookconfigurations", "policies", v1alpha1.ConditionReachable, isFalse, reasonPending); !strings.Contains(said, "a.example.com does not take part yet on 1 of 2 replicas: its host is not found") {
		t.Error(said)
	}
	if said := m.awaits("clusters", "east", v1alpha1.ConditionNamespacesSynced, isFalse, "Stale"); said != "0/1 replicas: the API does not answer in time" {
		t.Error(said)
	}
	var registry v1alpha1.RegistryStatus
	until(t, "the Registry says what is held back", func() bool {
		m.status("registries", "registry", &registry)
		for _, g := range registry.Generations {
			if g.Name == second && g.HeldBack == 1 && g.Replicas == 1 && reflect.DeepEqual(g.Lost, []string{"every Plugin"}) {
				return true
			}
		}
		return false
	})
	r.replicas.serve(first, map[string]any{"mirror": map[string]any{"quarantined": []any{map[string]any{"generation": second, "reason": "ended it"}}}}, 0, 1)
	if said := m.awaits("webhookconfigurations", "policies", v1alpha1.ConditionAccepted, isFalse, reasonQuarantined); !strings.HasPrefix(said, "2 of 2 replicas do not serve it") {
		t.Error(said)
	}
	m.awaits("clusters", "east", v1alpha1.ConditionAccepted, isTrue, "Accepted") // it is not what is new
	r.replicas.mu.Lock()
	r.replicas.status[0] = nil
	r.replicas.mu.Unlock()
	r.replicas.serve(second, nil, 1)
	until(t, "one does not say", func() bool {
		c := m.condition("webhookconfigurations", "policies", v1alpha1.ConditionProgrammed)
		return c.Message == "1/2 replicas; 1 answers with HTTP status 503" && c.Status == isFalse
	})
	r.replicas.serve("elsewhere", nil, 0, 1)
	m.awaits("clusters", "east", v1alpha1.ConditionProgrammed, isUnknown, "OtherGeneration")
}

// A rule that is added makes the registration stale until it is applied, and a Report
// changes nothing. What an enforcer adds is no difference.
func TestRegistrationIsReported(t *testing.T) {
	r := newRig(t)
	m, w := r.management, newWorkload(t)
	m.put(w.cluster("east", "Report"))
	m.put(configured("policies", "pods"))
	r.settings = func(s *Settings) { s.DryRun = false }
	c, _ := r.start()
	r.decided(c, has("Cluster/east", "WebhookConfiguration/policies"))
	m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isFalse, reasonNotRegistered)
	register(t, w, c)
	m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isTrue, reasonCurrent)
	w.edit(func(hooks []any) {
		hooks[0].(map[string]any)["namespaceSelector"] = map[string]any{"matchExpressions": []any{
			map[string]any{"key": "control-plane", "operator": "NotIn", "values": []any{"true"}},
			map[string]any{"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": []any{"aks"}},
		}}
	})
	until(t, "what was added is said", func() bool {
		c := m.condition("clusters", "east", v1alpha1.ConditionRegistrationCurrent)
		return c.Status == isTrue && strings.Contains(c.Message, "control-plane NotIn (true)")
	})

	m.put(configured("policies", "pods", "services"))
	until(t, "it is decided", func() bool { return len(c.view().versions) > 1 })
	if c := m.condition("clusters", "east", v1alpha1.ConditionRegistrationCurrent); c.Status != isTrue {
		t.Errorf("no replica serves it yet: %+v", c)
	}
	r.replicas.serve(c.view().decision.Generation, nil, 0, 1)
	if said := m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isFalse, reasonStale); !strings.Contains(said, "rules lack CREATE of pods, services in /v1") {
		t.Error(said)
	}
	if _, applied := w.counts(); applied != 0 {
		t.Errorf("%d were applied", applied)
	}
	register(t, w, c)
	m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isTrue, reasonCurrent)
	w.mu.Lock()
	w.forbids = true
	w.mu.Unlock()
	if said := m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isUnknown, reasonForbidden); !strings.Contains(said, "dispatcher registration --rbac") {
		t.Error(said)
	}
}

// register applies what is printed for a cluster now.
func register(t *testing.T, w *workload, c *Controller) {
	t.Helper()
	l := c.looks()["east"]()
	l.apply = true
	if v := l.take(t.Context()); v.status != isTrue {
		t.Fatalf("%+v", v)
	}
	w.mu.Lock()
	w.applied = 0
	w.mu.Unlock()
}

// With the policy Apply a registration is kept as it would be printed, with what an enforcer added,
// once all replicas serve it; with a dry run it is only said.
func TestRegistrationIsApplied(t *testing.T) {
	for _, dry := range []bool{true, false} {
		r := newRig(t)
		m, w := r.management, newWorkload(t)
		var log lockedBuffer
		r.settings = func(s *Settings) { s.DryRun, s.Logger = dry, slog.New(slog.NewJSONHandler(&log, nil)) }
		m.put(w.cluster("east", "Apply"))
		m.put(configured("policies", "pods"))
		c, stop := r.start()
		until(t, "a decision", func() bool {
			v := c.view()
			return v != nil && has("Cluster/east", "WebhookConfiguration/policies")(v.decision)
		})
		m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isFalse, reasonNotRegistered)
		if _, applied := w.counts(); applied != 0 {
			t.Error("it was applied before any replica served it")
		}
		r.replicas.serve(c.view().decision.Generation, nil, 0, 1)
		if dry {
			until(t, "what would be applied is logged", func() bool { return strings.Contains(log.String(), "registration would be applied") })
			if _, applied := w.counts(); applied != 0 {
				t.Error("a dry run applied")
			}
			stop()
			continue
		}
		m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isTrue, reasonCurrent)
		w.edit(func(hooks []any) {
			hook := hooks[0].(map[string]any)
			hook["timeoutSeconds"] = 29
			hook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "control-plane", "operator": "DoesNotExist"}}}
		})
		until(t, "it is repaired", func() bool { _, applied := w.counts(); return applied == 2 })
		m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isTrue, reasonCurrent)
		w.edit(func(hooks []any) {
			if s, _ := hooks[0].(map[string]any)["namespaceSelector"].(map[string]any); s == nil || len(s["matchExpressions"].([]any)) != 1 {
				t.Errorf("what the enforcer added is gone: %v", hooks[0])
			}
			hooks[0].(map[string]any)["name"] = "validate.somebody.example.com"
		})
		m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isFalse, reasonForeign)
		if _, applied := w.counts(); applied != 2 {
			t.Errorf("%d were applied", applied)
		}
		stop()
		if strings.Contains(log.String(), token) {
			t.Error("the log has the token")
		}
	}
}

// A cluster that calls through a Service, or with a path secret, which nobody can read from the
// registry, is left alone, however stale its registration is.
func TestRegistrationIsPrivate(t *testing.T) {
	for name, to := range map[string]map[string]any{
		"a path secret": {"url": "https://dispatcher.example.com/v1/clusters/east/5f2b9c04d1e84a7786c3f0aa91be6d28c0ffee17/validate"},
		"a Service":     {"service": map[string]any{"namespace": "kube-system", "name": "forward", "path": "/v1/clusters/east/validate"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m, w := r.management, newWorkload(t)
			r.settings = func(s *Settings) { s.DryRun = false }
			m.put(w.cluster("east", "Apply"))
			m.put(configured("policies", "pods"))
			c, stop := r.start()
			defer stop()
			until(t, "a decision", func() bool {
				v := c.view()
				return v != nil && has("Cluster/east", "WebhookConfiguration/policies")(v.decision)
			})
			r.replicas.serve(c.view().decision.Generation, nil, 0, 1)
			m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isTrue, reasonCurrent)
			_, before := w.counts()
			w.edit(func(hooks []any) {
				hook := hooks[0].(map[string]any)
				hook["clientConfig"], hook["timeoutSeconds"] = to, 29
			})
			m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isFalse, reasonStale)
			if _, applied := w.counts(); applied != before {
				t.Error("it was applied, without what the cluster calls by")
			}
		})
	}
}

// Who changes a registration back every time is told, and not fought with.
func TestRegistrationIsReverted(t *testing.T) {
	r := newRig(t)
	m, w := r.management, newWorkload(t)
	r.settings = func(s *Settings) { s.DryRun = false }
	m.put(w.cluster("east", "Apply"))
	m.put(configured("policies", "pods"))
	c, _ := r.start()
	r.decided(c, has("Cluster/east", "WebhookConfiguration/policies"))
	for n := 1; n <= maxReverts; n++ {
		until(t, "it is applied", func() bool { _, applied := w.counts(); return applied == n })
		w.edit(func(hooks []any) { hooks[0].(map[string]any)["timeoutSeconds"] = 29 })
	}
	m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isFalse, reasonReverted)
	if _, applied := w.counts(); applied != maxReverts {
		t.Errorf("it was applied %d times", applied)
	}
}

// Clusters that hang hold up neither the others nor any other condition.
func TestClustersThatHang(t *testing.T) {
	r := newRig(t)
	m, stuck, well := r.management, newWorkload(t), newWorkload(t)
	stuck.hang = make(chan struct{})
	t.Cleanup(func() { close(stuck.hang) })
	for i := range maxLooks - 1 {
		m.put(stuck.cluster("stuck"+string(rune('a'+i%26))+string(rune('a'+i/26)), "Report"))
	}
	m.put(well.cluster("east", "Report"))
	m.put(configured("policies", "pods"))
	c, _ := r.start()
	r.decided(c, has("Cluster/east", "WebhookConfiguration/policies"))
	m.awaits("clusters", "stuckaa", v1alpha1.ConditionAccepted, isTrue, "Accepted")
	m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isFalse, reasonNotRegistered)
	if said := m.awaits("clusters", "stuckaa", v1alpha1.ConditionRegistrationCurrent, isUnknown, reasonPending); said == "" {
		t.Error("it says nothing")
	}
	before, _ := well.counts()
	until(t, "the one that answers is looked at again and again", func() bool { asked, _ := well.counts(); return asked > before+6 })
}

// An API that refuses statuses is not asked over and over, and what is there already is
// not written again.
func TestWritesAreBounded(t *testing.T) {
	r := newRig(t)
	m := r.management
	m.refuses = true
	for _, name := range []string{"a", "b", "c"} {
		m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {authentication: {certificate: {commonNames: [" + name + "]}}}")
	}
	c, stop := r.start()
	r.decided(c, has("Cluster/a", "Cluster/b", "Cluster/c"))
	until(t, "each was tried", func() bool { return m.written() >= 4 })
	<-time.After(1500 * time.Millisecond) // in which the objects are looked at six times
	if n := m.written(); n > 2*4 {
		t.Errorf("%d writes of 4 objects", n)
	}
	stop()
	m.mu.Lock()
	m.refuses = false
	m.mu.Unlock()
	r.start()
	m.awaits("clusters", "a", v1alpha1.ConditionProgrammed, isTrue, "Programmed")
	m.awaits("clusters", "c", v1alpha1.ConditionProgrammed, isTrue, "Programmed")
	m.awaits("registries", "registry", v1alpha1.ConditionProgrammed, isTrue, "Programmed")
	until(t, "it is quiet", func() bool {
		before := m.written()
		<-time.After(200 * time.Millisecond)
		return m.written() == before
	})
}

// Two controllers write the same: each leaves what the other wrote.
func TestTwoControllers(t *testing.T) {
	r := newRig(t)
	m, w := r.management, newWorkload(t)
	m.put(w.cluster("east", "Apply"))
	m.put(configured("policies", "pods"))
	r.settings = func(s *Settings) { s.DryRun = false }
	c, _ := r.start()
	r.start()
	r.decided(c, has("Cluster/east", "WebhookConfiguration/policies"))
	m.awaits("clusters", "east", v1alpha1.ConditionRegistrationCurrent, isTrue, reasonCurrent)
	m.awaits("webhookconfigurations", "policies", v1alpha1.ConditionProgrammed, isTrue, "Programmed")
	until(t, "it is quiet", func() bool {
		before := m.written()
		<-time.After(300 * time.Millisecond)
		return m.written() == before
	})
}

// Of a controller that starts anew, the objects that were accepted before win, whatever
// their age: their status says so.
func TestRestart(t *testing.T) {
	r := newRig(t)
	m := r.management
	first := "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: old}\nspec: {authentication: {certificate: {commonNames: [old]}}}"
	m.put(first)
	m.put("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: young}\nspec: {authentication: {certificate: {commonNames: [prod]}}}")
	_, stop := r.start()
	m.awaits("clusters", "young", v1alpha1.ConditionAccepted, isTrue, "Accepted")
	m.put(strings.ReplaceAll(first, "[old]", "[prod]"))
	m.awaits("clusters", "old", v1alpha1.ConditionAccepted, isFalse, mirror.ReasonConflict)
	stop()
	c, _ := r.start()
	until(t, "a decision", func() bool { return c.view() != nil })
	if v := c.view(); !has("Cluster/young")(v.decision) || has("Cluster/old")(v.decision) {
		t.Errorf("%+v", v.decision.Objects)
	}
}

// Addresses come from the EndpointSlices of a Service: those that are ready, a pod once.
func TestReplicasOfAService(t *testing.T) {
	r := newRig(t)
	m := r.management
	m.put(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: one}
addressType: IPv4
endpoints:
- {addresses: [127.0.0.2], targetRef: {uid: a}}
- {addresses: [127.0.0.3], conditions: {ready: false}, targetRef: {uid: b}}
- {addresses: [127.0.0.4], conditions: {ready: true}, targetRef: {uid: c}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: two}
addressType: IPv6
endpoints:
- {addresses: ["::1"], targetRef: {uid: a}}`)
	c, stop := r.start()
	at := Replicas{Service: "dispatcher", Namespace: "ns", Port: 8081}
	got, err := at.ready(t.Context(), c.settings.Mirror.Client)
	stop()
	if err != nil || len(got) != 2 || !strings.HasSuffix(got[0], ":8081") {
		t.Errorf("%v (%v)", got, err)
	}
}

// An answer that has no end is not read to its end.
func TestReplicaThatSaysTooMuch(t *testing.T) {
	const said = `{"mirror": {"generation": "abc"}, "more": "x"}`
	var r, cut replica
	if r.read(strings.NewReader(said), 1000); r.failure != "" || r.generation() != "abc" {
		t.Errorf("%+v", r)
	}
	if cut.read(strings.NewReader(strings.Replace(said, "x", strings.Repeat("x", 1000), 1)), 1000); cut.failure != "answers with more than 1000 bytes" || cut.generation() != "" {
		t.Errorf("%+v", cut)
	}
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}
