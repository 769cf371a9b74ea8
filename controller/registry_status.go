// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/mirror"
)

// The bounds of the Registry's status.
const (
	maxGenerations = 16
	maxLost        = 16
)

// registry returns the status of the Registry, but for its times.
func (v *view) registry(generation int64) v1alpha1.RegistryStatus {
	s := v1alpha1.RegistryStatus{Accepted: v.decision.Generation}
	var refused []string
	for i := range v.decision.Objects {
		if o := &v.decision.Objects[i]; o.Refused != nil {
			s.Refused++
			line := o.Key
			if of := mirror.KindOf(o.Key); of == "ConfigMap" { // which has no status
				line += ": " + problemText(o.Refused)
			}
			refused = append(refused, line)
		}
	}
	accepted := condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ConditionAccepted, "every object is accepted")
	if s.Refused > 0 {
		accepted = condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, "Refused", fmt.Sprintf("%d objects are not served as they stand: %s", s.Refused, joined(refused)))
	}
	s.Generations = v.generations()
	most := int32(0)
	for _, g := range s.Generations {
		if g.Replicas > most {
			most, s.Generation = g.Replicas, g.Name
		}
	}
	s.Conditions = []metav1.Condition{accepted, v.allProgrammed(&s)}
	for i := range s.Conditions {
		s.Conditions[i].ObservedGeneration = generation
		s.Conditions[i].Message = oneLine(s.Conditions[i].Message, maxMessage)
	}
	return s
}

// allProgrammed says whether every ready replica serves all that is accepted.
func (v *view) allProgrammed(s *v1alpha1.RegistryStatus) metav1.Condition {
	const kind = v1alpha1.ConditionProgrammed
	all, has, held, quarantined := int32(len(v.fleet.replicas)), int32(0), int32(0), int32(0)
	for _, g := range s.Generations {
		held += g.HeldBack
		if g.Name == s.Accepted {
			has, quarantined = g.Replicas, g.Quarantined
		}
	}
	message := fmt.Sprintf("%d/%d replicas serve generation %s", has, all, short(s.Accepted))
	if failures := v.fleet.failures(); failures != "" {
		message += "; " + failures
	}
	switch {
	case !v.asks:
		return condition(kind, metav1.ConditionUnknown, reasonNoReplicas, "the controller does not know the replicas: see its flag --service")
	case v.fleet.failure != "":
		return condition(kind, metav1.ConditionUnknown, reasonNoReplicas, v.fleet.failure)
	case all == 0:
		return condition(kind, metav1.ConditionFalse, reasonNoReplicas, "no replica is ready")
	case has == all:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ConditionProgrammed, message)
	case quarantined > 0:
		return condition(kind, metav1.ConditionFalse, reasonQuarantined, message+fmt.Sprintf("; %d have quarantined it", quarantined))
	case held > 0:
		return condition(kind, metav1.ConditionFalse, "HeldBack", message+
			fmt.Sprintf("; %d hold a generation back: set the annotation %s to its name if the loss is meant", held, v1alpha1.ConfirmShrinkAnnotation))
	}
	return condition(kind, metav1.ConditionFalse, reasonPending, message)
}

// generations are what the replicas say of each, those first that most serve.
func (v *view) generations() []v1alpha1.RegistryGeneration {
	all := map[string]*v1alpha1.RegistryGeneration{}
	of := func(name string) *v1alpha1.RegistryGeneration {
		if all[name] == nil {
			all[name] = &v1alpha1.RegistryGeneration{Name: oneLine(name, 125)}
		}
		return all[name]
	}
	for i := range v.fleet.replicas {
		r := &v.fleet.replicas[i]
		if r.failure != "" || r.said.Mirror == nil {
			continue
		}
		if g := r.generation(); g != "" {
			of(g).Replicas++
		}
		if n := r.said.Mirror.Next; n != nil && len(n.Lost) > 0 {
			g := of(n.Generation)
			g.HeldBack++
			g.Lost = nil
			for _, lost := range n.Lost[:min(len(n.Lost), maxLost)] {
				g.Lost = append(g.Lost, oneLine(lost, maxShownText))
			}
		}
		for _, q := range r.said.Mirror.Quarantined {
			g := of(q.Generation)
			g.Quarantined++
			g.Reason = oneLine(q.Reason, maxWords)
		}
	}
	list := make([]v1alpha1.RegistryGeneration, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	slices.SortStableFunc(list, func(a, b v1alpha1.RegistryGeneration) int {
		return cmp.Or(cmp.Compare(b.Replicas, a.Replicas), cmp.Compare(b.HeldBack, a.HeldBack))
	})
	return list[:min(len(list), maxGenerations)]
}

// serving reports whether every ready replica serves a generation.
func (f *fleet) serving(generation string) bool {
	if f.failure != "" || len(f.replicas) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.replicas, func(r replica) bool { return r.generation() != generation })
}
