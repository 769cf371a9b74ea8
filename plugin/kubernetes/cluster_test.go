// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

// stores is a cluster that stores objects, by their resources.
type stores struct {
	hook.Caller // for what is not asked
	objects     map[schema.GroupVersionResource]objects
}

// storing is a cluster with these objects of a resource, in YAML.
func storing(t *testing.T, resource schema.GroupVersionResource, list ...string) *stores {
	t.Helper()
	var stored objects
	for _, text := range list {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		stored = append(stored, &hook.Stored{Namespace: o.Namespace, Name: o.Name, JSON: raw})
	}
	slices.SortFunc(stored, func(a, b *hook.Stored) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return &stores{objects: map[schema.GroupVersionResource]objects{resource: stored}}
}

// Objects implements hook.Caller.
func (s *stores) Objects(r schema.GroupVersionResource) hook.Objects {
	if o, ok := s.objects[r]; ok {
		return o
	}
	return nil
}

// objects implements hook.Objects.
type objects []*hook.Stored

func (o objects) Get(namespace, name string, _ time.Time) (*hook.Stored, error) {
	for _, s := range o {
		if s.Namespace == namespace && s.Name == name {
			return s, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

func (o objects) List(namespace string, _ time.Time) (list []*hook.Stored, _ error) {
	for _, s := range o {
		if namespace == "" || s.Namespace == namespace {
			list = append(list, s)
		}
	}
	return list, nil
}

// silent is a cluster whose objects are not known.
type silent struct{ hook.Caller }

var errSilent = errors.New("the cluster does not answer")

func (silent) Objects(schema.GroupVersionResource) hook.Objects { return silent{} }

func (silent) Get(string, string, time.Time) (*hook.Stored, error) { return nil, errSilent }
func (silent) List(string, time.Time) ([]*hook.Stored, error)      { return nil, errSilent }

// K11 A plugin that cannot know the objects that it needs has no answer, whatever the object
// is: the failure policy decides. Where it needs none it answers.
func TestK11NotKnown(t *testing.T) {
	const claim, growing = "{metadata: {name: web}}", "{spec: {storageClassName: gold, resources: {requests: {storage: 2Gi}}}}"
	for name, q := range map[string]request{
		"DefaultIngressClass":         {resource: "networking.k8s.io/ingresses", object: "{}"},
		"DefaultStorageClass":         {resource: "persistentvolumeclaims", object: claim},
		"LimitRanger":                 {object: pod("", "")},
		"PersistentVolumeClaimResize": {resource: "persistentvolumeclaims", operation: "UPDATE", object: growing, old: "{spec: {storageClassName: gold}, status: {phase: Bound}}"},
		"PodNodeSelector":             {object: pod("", "")},
		"PodTolerationRestriction":    {object: pod("", "tolerations: [{operator: Exists}]")},
		"Priority":                    {object: pod("", "")},
		"RuntimeClass":                {object: pod("", "runtimeClassName: kata")},
	} {
		p := configured(t, name, "")
		q.caller = silent{}
		other := q
		other.resource, other.kind = "example.com/others", "Other"
		if p.Mutates() {
			p.mutate(q).says(t, "error: the cluster does not answer")
			p.mutate(other).says(t, "allowed")
		}
		if name == "Priority" {
			q.resource, q.kind, q.object = "scheduling.k8s.io/priorityclasses", "PriorityClass", "{metadata: {name: high}, globalDefault: true}"
		}
		if p.Validates() {
			p.validate(q).says(t, "error: the cluster does not answer")
			p.validate(other).says(t, "allowed")
			q.object, q.old = "{spec: 1, globalDefault: 1}", ""
			if got := p.validate(q); got.err == nil {
				t.Errorf("%s: of what cannot be decoded it says %s", name, got)
			}
		}
		q.object = ""
		if got := p.ask(q, p.Mutates()); got.err == nil && name != "Priority" {
			t.Errorf("%s: without an object it says %s", name, got)
		}
	}
	p := configured(t, "RuntimeClass", "")
	p.mutate(request{object: pod("", ""), caller: silent{}}).is(t, pod("", ""))
}

// Each plugin names the resources that it asks for, and no others.
func TestLists(t *testing.T) {
	want := map[string]string{
		"DefaultIngressClass": "networking.k8s.io/v1, Resource=ingressclasses", "DefaultStorageClass": "storage.k8s.io/v1, Resource=storageclasses",
		"LimitRanger": "/v1, Resource=limitranges", "PersistentVolumeClaimResize": "storage.k8s.io/v1, Resource=storageclasses",
		"PodNodeSelector": "/v1, Resource=namespaces", "PodTolerationRestriction": "/v1, Resource=namespaces",
		"ClusterResourceOverride": "/v1, Resource=namespaces/v1, Resource=limitranges", "ExternalIPRanger": "", "RunOnceDuration": "/v1, Resource=namespaces",
		"Priority": "scheduling.k8s.io/v1, Resource=priorityclasses", "RuntimeClass": "node.k8s.io/v1, Resource=runtimeclasses",
	}
	for _, p := range kubernetes.Plugins(plugin.Plugin{Name: "mine"}) {
		got := ""
		for _, r := range p.Lists {
			got += r.String()
		}
		if got != want[p.Name] {
			t.Errorf("%s lists %q, want %q", p.Name, got, want[p.Name])
		}
	}
}

// What a cluster stores is decoded once for all admissions, so nobody writes to it, not even
// to the text that a quantity keeps: the race detector looks.
func TestStoredObjectsAreRead(t *testing.T) {
	for name, q := range map[string]request{
		"LimitRanger": {object: pod("", containers(1, "{limits: {cpu: 2}}", "{}")), caller: storing(t, limitRanges, bounded,
			limitRange("b", "{type: Container, max: {cpu: '100000000000.000000001'}}", "{type: Pod, min: {cpu: '100000000000.000000001', memory: 1Gi}, maxLimitRequestRatio: {cpu: 1.5}}"))},
		"RuntimeClass": {object: pod("{key: a, operator: Exists}", "runtimeClassName: kata, overhead: {cpu: '100000000000.000000001'}"), caller: storing(t, runtimeClasses,
			"{metadata: {name: kata}, overhead: {podFixed: {cpu: '100000000000.000000001'}}, scheduling: {nodeSelector: {a: b}, tolerations: [{operator: Exists}]}}")},
		"PodTolerationRestriction": {object: pod(v, burstable), caller: storing(t, namespaces, annotated(map[string]string{defaultTolerations: "[" + v1 + "]"}))},
		"PodNodeSelector":          {object: pod("", ""), caller: storing(t, namespaces, namespaceShop(nodeSelector, "a=b"))},
		"Priority":                 {object: pod("", ""), caller: storing(t, priorityClasses, default1, default2)},
	} {
		p := configured(t, name, "")
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for range 5 {
					p.mutate(q)
					if p.Validates() {
						p.validate(q)
					}
				}
			})
		}
		asking.Wait()
	}
}
