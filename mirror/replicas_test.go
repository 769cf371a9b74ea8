// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-dispatcher/dispatcher/fleet"
	"github.com/admission-dispatcher/dispatcher/mirror"
)

// slice is an EndpointSlice of a Service, with endpoints in YAML.
func slice(name, service string, endpoints ...string) string {
	return fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":%q,"namespace":"tier","labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4","endpoints":[%s]}`,
		name, service, strings.Join(endpoints, ","))
}

// pod is an endpoint that is a pod; ready is true, false or null.
func pod(name, address, ready string) string {
	return fmt.Sprintf(`{"addresses":[%q],"conditions":{"ready":%s},"targetRef":{"kind":"Pod","namespace":"tier","name":%q}}`, address, ready, name)
}

func counting(r *rig) *rig {
	r.settings = func(s *mirror.Settings) { s.Service = types.NamespacedName{Namespace: "tier", Name: "dispatcher"} }
	return r
}

// counted waits until so many replicas are known, to the status and to who reads the file.
func (r *rig) counted(what string, replicas int) {
	r.t.Helper()
	r.until(what, func(s mirror.Status) bool { return s.Replicas == replicas })
	if n := fleet.New(fleet.Settings{File: filepath.Join(r.directory, fleet.FileName)}).Size(); n != replicas {
		r.t.Errorf("%s: the file says %d, want %d", what, n, replicas)
	}
}

// The ready endpoints of the Service are counted, each pod once, and nobody else's.
func TestReplicasAreCounted(t *testing.T) {
	r := counting(newRig(t))
	r.api.apply(slice("a", "dispatcher", pod("one", "10.0.0.1", "true"), pod("two", "10.0.0.2", "true"), pod("three", "10.0.0.3", "false")))
	r.api.apply(slice("b", "another", pod("other", "10.0.0.4", "true")))
	r.start()
	r.counted("two of three are ready", 2)
	r.api.apply(slice("c", "dispatcher", pod("one", "fd00::1", "true"), pod("four", "fd00::4", "null")))
	r.counted("a pod with two addresses, and one of which nobody says whether it is ready", 3)
	r.api.apply(slice("d", "dispatcher", `{"addresses":["10.0.0.9"]}`, `{"addresses":["10.0.0.9"]}`))
	r.counted("one that is no pod", 4)
	r.api.remove("EndpointSlice/c", "EndpointSlice/d")
	r.counted("two slices less", 2)
}

// While nobody is ready, or the API is away, the last number stays, after a restart too.
func TestLastCountStays(t *testing.T) {
	r := counting(newRig(t))
	says := func(want int) {
		t.Helper()
		if n := fleet.New(fleet.Settings{File: filepath.Join(r.directory, fleet.FileName)}).Size(); n != want {
			t.Errorf("the file says %d, want %d", n, want)
		}
	}
	r.api.apply(slice("a", "dispatcher", pod("one", "10.0.0.1", "true"), pod("two", "10.0.0.2", "true")))
	r.start()
	r.counted("two", 2)
	r.api.apply(slice("a", "dispatcher", pod("one", "10.0.0.1", "false"), pod("two", "10.0.0.2", "false")))
	r.api.apply(slice("b", "dispatcher"))
	r.api.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}") // what comes after it is seen
	says(2)
	r.api.away(true)
	r.start()
	r.until("the API is away", func(s mirror.Status) bool {
		for _, of := range s.Resources {
			if of.Resource == "endpointslices" {
				return of.Error != ""
			}
		}
		return false
	})
	says(2)
	r.api.away(false)
	r.api.apply(slice("a", "dispatcher", pod("one", "10.0.0.1", "true")))
	r.counted("one is ready again", 1)
}

// Slices without end are counted up to what a fleet may have.
func TestReplicasAreBounded(t *testing.T) {
	r := counting(newRig(t))
	for s := range 3 {
		var list []string
		for i := range 500 {
			list = append(list, pod(fmt.Sprint("pod-", s, "-", i), fmt.Sprintf("10.%d.%d.%d", s, i/250, i%250), "true"))
		}
		r.api.apply(slice(fmt.Sprint("s", s), "dispatcher", list...))
	}
	r.start()
	r.counted("as many as there may be", fleet.MaxReplicas)
}

// Without a Service nobody asks for slices, which needs rights, and nothing is written.
func TestNobodyCounts(t *testing.T) {
	r := newRig(t)
	r.api.apply(slice("a", "dispatcher", pod("one", "10.0.0.1", "true")))
	r.start()
	r.until("all is known", func(s mirror.Status) bool { return len(s.Resources) > 0 && s.Resources[0].Synced })
	if _, err := os.Stat(filepath.Join(r.directory, fleet.FileName)); err == nil || r.api.tried("endpointslices") > 0 {
		t.Errorf("slices are asked for %d times, %v", r.api.tried("endpointslices"), err)
	}
}

func TestParseService(t *testing.T) {
	if s, err := mirror.ParseService("tier/dispatcher"); err != nil || s.Namespace != "tier" || s.Name != "dispatcher" {
		t.Errorf("%v, %v", s, err)
	}
	for _, text := range []string{"", "dispatcher", "/dispatcher", "tier/", "tier/a/b", "Tier/a", "tier/a=b,c", "tier/1a"} {
		if s, err := mirror.ParseService(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}

// A mirror of a cell has that cell's Clusters, and those that move away from it. A Cluster
// of another cell is no problem, whatever is wrong with it.
func TestCell(t *testing.T) {
	r := newRig(t)
	r.settings = func(s *mirror.Settings) { s.Cell = "c7" }
	in := func(name, cells string) string {
		return "{apiVersion: dispatcher.dev/v1alpha1, kind: Cluster, metadata: {name: " + name + "}, spec: {authentication: {certificate: {commonNames: [" + name + "]}}" + cells + "}}"
	}
	r.api.apply(in("own", ", cell: c7"))
	r.api.apply(in("leaving", ", cell: c8, previousCell: c7"))
	r.api.apply(in("other", ", cell: c8, kubeconfigSecretRef: {name: nowhere}"))
	r.api.apply(in("unplaced", ""))
	r.start()
	r.serves("leaving", "own")
	if s := r.until("it is served", func(s mirror.Status) bool { return s.Generation != "" }); s.RefusedCount > 0 {
		t.Errorf("refused: %+v", s.Refused)
	}
	r.api.apply(in("unplaced", ", cell: c7"))
	r.serves("leaving", "own", "unplaced")
	r.api.apply(in("leaving", ", cell: c8"))
	r.serves("own", "unplaced")
}
