// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// ConfirmMirrorShrinkAnnotation of a Cluster confirms that most of what is mirrored of it
// has gone. Its value is that of WorkloadStatus.Held.
const ConfirmMirrorShrinkAnnotation = "dispatcher.dev/confirm-mirror-shrink"

// maxTogether bounds how often all objects are compiled to find configurations of workload
// clusters that compile alone and not together.
const maxTogether = 50

// mirroring is an accepted Cluster that may have configurations mirrored.
type mirroring struct {
	*object
	name       string
	hosts      []string
	kubeconfig []byte
}

// memo is what was found of a workload's configurations, beside which objects.
type memo struct {
	of    string
	found decision
}

// mirrorWorkloads adds to a decision what workload clusters have. All else was decided
// before, so nothing of a workload cluster keeps another object out. Each cluster is judged
// with its own Cluster and the bindings alone.
func (m *Mirror) mirrorWorkloads(ctx context.Context, d *decision, judge judge) {
	clusters := mirroringOf(d.objects)
	m.follow(ctx, clusters)
	if len(clusters) == 0 {
		return
	}
	bindings := slices.DeleteFunc(slices.Clone(d.objects), func(o *object) bool { return o.kind() != "WebhookBinding" })
	var incumbents, changed []*object
	for i := range clusters {
		c := &clusters[i]
		w := m.workloads[c.name]
		if w == nil { // its kubeconfig cannot be used: what was mirrored stays
			incumbents = append(incumbents, sorted(m.acceptedOf(c))...)
			continue
		}
		for _, o := range m.judgeWorkload(c, w, bindings, judge, &d.refused) {
			had := m.accepted[o.key]
			if had != nil && callsAllowed(had, c.hosts) {
				incumbents = append(incumbents, had)
			}
			if had == nil || had.hash != o.hash {
				changed = append(changed, o)
			}
		}
	}
	together := &acceptor{left: maxTogether, before: map[string]string{}, refused: map[string]Refused{}, found: map[string]string{},
		judge: func(list []*object) (*compile.Compiled, []manifest.Problem) {
			return judge(slices.Concat(d.objects, list))
		}}
	if d.compiled == nil && len(d.objects) > 0 {
		return // nothing can be judged
	}
	set := together.grow(together.grow(map[string]*object{}, incumbents), changed)
	d.mirrored = sorted(set)
	d.refused = slices.AppendSeq(d.refused, maps.Values(together.refused))
	slices.SortFunc(d.refused, func(x, y Refused) int { return strings.Compare(x.Object, y.Object) })
	for _, w := range m.workloads {
		w.served = 0
	}
	for _, o := range d.mirrored {
		if w := m.workloads[clusterOf(o.key)]; w != nil {
			w.served++
		}
	}
}

// judgeWorkload returns what of a cluster's configurations is good.
func (m *Mirror) judgeWorkload(c *mirroring, w *workload, bindings []*object, judge judge, refused *[]Refused) []*object {
	accepted := m.acceptedOf(c)
	candidates := sorted(accepted)
	if listed, ok := w.state(); ok {
		candidates = workloadObjects(c.name, c.hosts, listed, accepted)
		candidates = m.guard(w, candidates, accepted)
	}
	for _, o := range candidates {
		if m.isDistrusted(o.hash) {
			o.unresolved = []manifest.Problem{{Reason: "was in a generation with which the dispatcher crashed"}}
		}
	}
	base := append([]*object{c.object}, bindings...)
	parts := make([]string, 0, len(base)+2*len(candidates))
	for _, o := range base {
		parts = append(parts, o.hash)
	}
	for _, o := range candidates {
		parts = append(parts, o.key, o.hash, fmt.Sprint(len(o.unresolved), accepted[o.key] != nil && accepted[o.key].hash == o.hash))
	}
	if of := sum(parts...); w.memo.of != of {
		found := accept(candidates, accepted, w.rejected, func(list []*object) (*compile.Compiled, []manifest.Problem) {
			return judge(slices.Concat(base, list))
		})
		w.rejected, w.memo = found.rejected, memo{of, found}
	}
	*refused = append(*refused, w.memo.found.refused...)
	return w.memo.found.objects
}

// guard keeps what a cluster has lost, if that is most of what is mirrored of it, until it
// is confirmed. The other clusters do not wait for that.
func (m *Mirror) guard(w *workload, candidates []*object, accepted map[string]*object) []*object {
	w.held = ""
	has := map[string]bool{}
	for _, o := range candidates {
		has[o.key] = true
	}
	left := 0
	for key := range accepted {
		if has[key] {
			left++
		}
	}
	if len(accepted) == 0 || left > 0 && 2*left >= len(accepted) {
		return candidates
	}
	token := sum(slices.Sorted(maps.Keys(has))...)
	if m.confirms(w.cluster) == token {
		return candidates
	}
	w.held = token
	for key, o := range accepted {
		if !has[key] {
			candidates = append(candidates, o)
		}
	}
	return candidates
}

// confirms returns what the Cluster confirms in the API.
func (m *Mirror) confirms(cluster string) string {
	for _, s := range m.stores {
		if s.kind != "Cluster" {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if it := s.items[cluster]; it != nil {
			return it.Annotations[ConfirmMirrorShrinkAnnotation]
		}
	}
	return ""
}

// acceptedOf returns what is mirrored of a cluster and calls what it may call now.
func (m *Mirror) acceptedOf(c *mirroring) map[string]*object {
	of := map[string]*object{}
	for key, o := range m.accepted {
		if strings.HasPrefix(key, workloadPrefix+c.name+"/") && callsAllowed(o, c.hosts) {
			of[key] = o
		}
	}
	return of
}

// clusterOf returns the cluster of a key of a workload's object.
func clusterOf(key string) string {
	cluster, _, _ := strings.Cut(strings.TrimPrefix(key, workloadPrefix), "/")
	return cluster
}

// mirroringOf returns the Clusters of a decision that may have configurations mirrored.
func mirroringOf(objects []*object) (list []mirroring) {
	for _, o := range objects {
		if o.kind() != "Cluster" {
			continue
		}
		for name, text := range o.files {
			var c v1alpha1.Cluster
			if strings.HasPrefix(name, filesDirectory) || json.Unmarshal(text, &c) != nil || c.Spec.Mirror == nil {
				continue
			}
			if kubeconfig := o.files[c.Spec.KubeconfigFile]; len(kubeconfig) > 0 {
				list = append(list, mirroring{o, c.Name, c.Spec.Mirror.Hosts, kubeconfig})
			}
		}
	}
	return list
}

// follow begins to ask the APIs of clusters, and ends it for others. With another
// kubeconfig what was read stays.
func (m *Mirror) follow(ctx context.Context, clusters []mirroring) {
	wanted := map[string]bool{}
	for i := range clusters {
		c := &clusters[i]
		wanted[c.name] = true
		before := m.workloads[c.name]
		if before != nil && before.access == sum(string(c.kubeconfig)) {
			continue
		}
		w, err := m.newWorkload(ctx, c.name, c.kubeconfig)
		if err != nil {
			m.settings.Logger.Error("a cluster's API cannot be asked for what is mirrored", "cluster", c.name, "error", err)
			continue
		}
		if before != nil {
			before.stop()
			w.inherit(before)
		}
		m.workloads[c.name] = w
	}
	for name, w := range m.workloads {
		if !wanted[name] {
			w.stop()
			delete(m.workloads, name)
		}
	}
}

// inherit takes what was read with another credential, until there is an answer.
func (w *workload) inherit(before *workload) {
	before.mu.Lock()
	listed, read, answered := before.listed, before.sum, before.answered
	before.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.answered {
		w.listed, w.sum, w.answered = listed, read, answered
	}
	w.rejected, w.memo = before.rejected, before.memo
}

// workloadHashes is what workload clusters have, for the sum of what is judged.
func (m *Mirror) workloadHashes() (parts []string) {
	for _, name := range slices.Sorted(maps.Keys(m.workloads)) {
		w := m.workloads[name]
		w.mu.Lock()
		parts = append(parts, name, w.sum)
		w.mu.Unlock()
	}
	return parts
}

func (m *Mirror) workloadStatus() (list []WorkloadStatus) {
	for _, name := range slices.Sorted(maps.Keys(m.workloads)) {
		if len(list) == mirrorstatus.MaxWorkloads {
			break
		}
		w := m.workloads[name]
		w.mu.Lock()
		s := WorkloadStatus{Cluster: name, Served: w.served, Answered: w.answered, Held: w.held}
		if w.err != nil {
			s.Error = cut(w.err.Error())
		}
		w.mu.Unlock()
		list = append(list, s)
	}
	return list
}
