// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// apis are those of clusters, of which only that of west answers. Its namespaces, and what
// they contain, are called after themselves; what is in "known" is known everywhere.
type apis struct {
	mu    sync.Mutex
	asked map[string]int // by cluster
	under int            // requests that hang
	most  int            // of these at once
}

func (a *apis) of(cluster string, _ manifest.KubeAccess, _ schema.GroupVersionResource) chain.ObjectSource {
	return stored{apis: a, cluster: cluster}
}

// count begins a request that hangs, or with -1 ends it.
func (a *apis) count(cluster string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[cluster] += max(n, 0)
	a.under += n
	a.most = max(a.most, a.under)
}

// lookups returns how often a cluster was asked.
func (a *apis) lookups(cluster string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[cluster]
}

// hanging returns how many requests hang, and the most at once.
func (a *apis) hanging() (now, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.under, a.most
}

type stored struct {
	chain.Resource
	*apis
	cluster string
}

func (s stored) Identity() string   { return "objects of " + s.cluster }
func (stored) Open(context.Context) {}

func (s stored) Known(namespace, name string) (*hook.Stored, error) {
	if !slices.Contains([]string{namespace, name}, "known") && s.cluster != "west" {
		return nil, hook.ErrNotLookedUp
	}
	return &hook.Stored{Namespace: namespace, Name: name, JSON: fmt.Appendf(nil, `{"apiVersion":"v1","metadata":{"name":%q},"data":{"a":"b"}}`, name)}, nil
}

func (s stored) KnownList(namespace string) ([]*hook.Stored, error) {
	one, err := s.Known(namespace, "limits")
	if err != nil {
		return nil, err
	}
	return []*hook.Stored{one}, nil
}

func (s stored) hang(deadline time.Time) error {
	s.count(s.cluster, 1)
	defer s.count(s.cluster, -1)
	<-time.After(time.Until(deadline) / 2)
	return errors.New("the cluster's API did not answer in time")
}

func (s stored) Get(_, _ string, deadline time.Time) (*hook.Stored, error) {
	return nil, s.hang(deadline)
}

func (s stored) List(_ string, deadline time.Time) ([]*hook.Stored, error) {
	return nil, s.hang(deadline)
}

const (
	// decidingPolicy has a spec, what it decides, and a binding.
	decidingPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sAdmissionPolicy
metadata: {name: deciding}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
  %[2]s
---
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sAdmissionPolicyBinding
metadata: {name: deciding, annotations: {dispatcher.dev/params: Cluster}}
spec: {policyName: deciding, %[3]s}
`
	ofConfigMaps = `paramKind: {apiVersion: v1, kind: ConfigMap}
  `
	paramsHold    = `validations: [{expression: "params.data.a == 'b'"}]`
	namespaceHold = `validations: [{expression: "namespaceObject.metadata.name != ''"}]`
	byName        = `validationActions: [Deny], paramRef: {name: limits, parameterNotFoundAction: Deny}`
	bySelector    = `validationActions: [Deny], paramRef: {selector: {}, parameterNotFoundAction: Deny}`
	changes       = `mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', value: params.data}]"}}]
  reinvocationPolicy: Never
  failurePolicy: Fail`
)

// hung is a dispatcher for west and five clusters whose APIs hang.
type hung struct {
	*apis
	t          *testing.T
	dispatcher *dispatcher.Dispatcher
	snapshot   *registry.Snapshot
	phase      chain.Phase
}

const (
	hanging     = 5  // clusters
	mayWait     = 16 // admissions of all clusters: a quarter
	ofOne       = 60 // admissions that each of them sends
	hangingName = "hangs-%d"
)

func newHung(t *testing.T, phase chain.Phase, manifest string) *hung {
	w := &hung{apis: &apis{asked: map[string]int{}}, t: t, phase: phase}
	workers := hook.NewWorkers(1)
	t.Cleanup(workers.Close)
	manifests := []string{manifest}
	for i := range hanging {
		name := fmt.Sprintf(hangingName, i)
		manifests = append(manifests, fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %[1]s}\n"+
			"spec: {authentication: {certificate: {commonNames: [%[1]s]}}, kubeconfigFile: kubeconfig}\n", name))
	}
	w.dispatcher, w.snapshot = worldWithAPIs(t, overload.Limits{Admissions: 4 * mayWait},
		compile.Options{Objects: w.of, Plugins: compiledIn(t), Workers: workers}, manifests...)
	return w
}

// ask sends a pod of a namespace.
func (w *hung) ask(cluster, namespace string) dispatcher.Verdict {
	w.t.Helper()
	review := bytes.ReplaceAll(selectedPod, []byte(`"namespace":"shop"`), fmt.Appendf(nil, `"namespace":%q`, namespace))
	return admitPhase(w.t, w.phase, w.dispatcher, w.snapshot, cluster, review, 10*time.Second)
}

// storm sends admissions from the clusters whose APIs hang, each in a namespace of its own,
// so that none is asked about the same as another. It returns how many were shed at once.
// All have an answer after end.
func (w *hung) storm() (shed func() int, end func()) {
	var (
		waiting sync.WaitGroup
		begin   = time.Now()
		many    atomic.Int64
	)
	for i := range hanging * ofOne {
		waiting.Go(func() {
			v := w.ask(fmt.Sprintf(hangingName, i%hanging), fmt.Sprint("n-", i))
			if v.Response.Allowed {
				w.t.Errorf("allowed without what it depends on: %+v", v)
			}
			if time.Since(begin) > 9*time.Second {
				w.t.Errorf("answered after %v", time.Since(begin))
			}
			if v.Outcomes[0].Cause == hook.Shed && v.Response.Code == 429 {
				many.Add(1)
			}
		})
	}
	synctest.Wait()
	return func() int { return int(many.Load()) }, waiting.Wait
}

// O8 The APIs of five clusters hang, and each cluster sends as many admissions as it likes, about
// as many objects as it likes. Those that wait for an API are a quarter of all admissions,
// shared among clusters; the others are shed at once. What the cluster has said before still
// decides, and so does all that others have: with one cluster well, and slots for everybody.
func TestO8WaitingForObjectsLeavesSlots(t *testing.T) {
	for _, row := range []struct {
		name     string
		phase    chain.Phase
		manifest string
	}{
		{"params by name", chain.Validating, fmt.Sprintf(decidingPolicy, "Validating", ofConfigMaps+paramsHold, byName)},
		{"params by selector", chain.Validating, fmt.Sprintf(decidingPolicy, "Validating", ofConfigMaps+paramsHold, bySelector)},
		{"params of mutations", chain.Mutating, fmt.Sprintf(decidingPolicy, "Mutating", ofConfigMaps+changes, strings.TrimPrefix(byName, "validationActions: [Deny], "))},
		{"namespaceObject", chain.Validating, fmt.Sprintf(decidingPolicy, "Validating", namespaceHold, "validationActions: [Deny]")},
		{"a plugin's list", chain.Validating, limitRanger},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, begin := newHung(t, row.phase, row.manifest), time.Now()
				shed, end := w.storm()
				if now, most := w.hanging(); most == 0 || most > mayWait || shed() != hanging*ofOne-now {
					t.Errorf("%d admissions wait for APIs, of %d that may, and %d of %d are shed", most, mayWait, shed(), hanging*ofOne)
				}
				for i := range hanging {
					if n := w.lookups(fmt.Sprintf(hangingName, i)); n == 0 || n > mayWait/2 {
						t.Errorf("cluster %d has %d lookups", i, n)
					}
				}
				for i := range 100 {
					if v := w.ask("west", fmt.Sprint("n-", i)); !v.Response.Allowed || len(v.Outcomes) != 1 {
						t.Fatalf("west: %+v", v)
					}
				}
				if v := w.ask(fmt.Sprintf(hangingName, 0), "known"); !v.Response.Allowed || len(v.Outcomes) != 1 {
					t.Errorf("what is known: %+v", v)
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("others wait for %v", took)
				}
				var another sync.WaitGroup
				another.Go(func() { w.ask("east", "n") })
				synctest.Wait()
				if w.lookups("east") != 1 {
					t.Error("one more cluster has no lookup")
				}
				another.Wait()
				end()
				if now, _ := w.hanging(); now != 0 || len(w.dispatcher.InFlight()) != 0 {
					t.Errorf("%d requests are under way, in flight %v", now, w.dispatcher.InFlight())
				}
			})
		})
	}
}

const limitRanger = `
apiVersion: dispatcher.dev/v1alpha1
kind: Plugin
metadata: {name: limits}
spec: {plugin: LimitRanger, phases: [Validating]}
`
