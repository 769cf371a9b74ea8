// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// summary is how much there is in a generation.
type summary struct {
	Kinds   map[string]int `json:"kinds"`   // objects of each kind
	Enforce map[string]int `json:"enforce"` // what denies in each cluster: webhooks, policies and plugins; 0 is said
}

func summarize(objects []*object, compiled *compile.Compiled) summary {
	s := summary{Kinds: map[string]int{}, Enforce: map[string]int{}}
	for _, o := range objects {
		s.Kinds[o.kind()]++
	}
	if compiled == nil {
		return s
	}
	for name, c := range compiled.Clusters {
		s.Enforce[name] = 0
		for _, phase := range []*chain.Chain{c.Validating, c.Mutating} {
			if phase == nil {
				continue
			}
			for _, e := range phase.Webhooks {
				if e.Mode == chain.Enforce {
					s.Enforce[name]++
				}
			}
		}
	}
	return s
}

// shrunk returns what a generation has lost of the one before, if that is so much that
// it may be a mistake: who deletes a CustomResourceDefinition deletes all its objects.
func shrunk(before, after summary) (lost []string) {
	for _, kind := range slices.Sorted(maps.Keys(before.Kinds)) {
		if had, has := before.Kinds[kind], after.Kinds[kind]; had > 0 && has == 0 {
			lost = append(lost, fmt.Sprintf("every %s (there were %d)", kind, had))
		}
	}
	if had, has := before.Kinds["Cluster"], after.Kinds["Cluster"]; has > 0 && 2*has < had {
		lost = append(lost, fmt.Sprintf("%d of %d Clusters", had-has, had))
	}
	for _, cluster := range slices.Sorted(maps.Keys(before.Enforce)) {
		had := before.Enforce[cluster]
		if has, there := after.Enforce[cluster]; there && 2*has < had {
			lost = append(lost, fmt.Sprintf("%d of %d that deny in cluster %s", had-has, had, cluster))
		}
	}
	return lost
}

// shrinkWindow is how long what was served counts: what is deleted object by object is
// gone in many generations, each of which has lost little of the one before.
const shrinkWindow = 10 * time.Minute

// peak is how much there was in a generation that was served before.
type peak struct {
	summary
	until time.Time
}

// lost returns what a generation has lost of what is served, or was within shrinkWindow.
func (m *Mirror) lost(after summary) []string {
	m.peaks = slices.DeleteFunc(m.peaks, func(p peak) bool { return time.Now().After(p.until) })
	for _, p := range m.peaks {
		if lost := shrunk(p.summary, after); len(lost) > 0 {
			return lost
		}
	}
	return shrunk(m.serving.summary, after)
}
