// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/mirror"
)

// view is what the controller sees. What it writes is a function of it.
type view struct {
	decision *mirror.Decision
	// versions are what generations have of each object, by their names: those that the
	// controller has decided since it runs.
	versions map[string]map[string]string
	asks     bool // there are replicas to ask
	fleet    fleet
	verdicts map[string]verdict // by the name of the cluster
}

// conditions returns those of an object. Their LastTransitionTime is not set.
func (v *view) conditions(o *mirror.Judged) []metav1.Condition {
	kind, name, _ := strings.Cut(o.Key, "/")
	accepted := v.accepted(o)
	list := []metav1.Condition{accepted, resolved(o), v.programmed(o, &accepted)}
	switch kind {
	case "WebhookConfiguration":
		list = append(list, v.reachable(name))
	case "Cluster":
		if c, ok := v.namespacesSynced(name); ok {
			list = append(list, c)
		}
		if c, ok := v.registrationCurrent(name); ok {
			list = append(list, c)
		}
	}
	for i := range list {
		list[i].ObservedGeneration = o.Generation
		list[i].Message = oneLine(list[i].Message, maxMessage)
	}
	return list
}

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1500

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// The reasons that more than one condition has.
const (
	reasonQuarantined = "Quarantined"
	reasonPending     = "Pending"
	reasonNoReplicas  = "NoReplicas"
)

// accepted says whether the object is in the accepted set, as it stands.
func (v *view) accepted(o *mirror.Judged) metav1.Condition {
	const kind = v1alpha1.ConditionAccepted
	if r := o.Refused; r != nil {
		if r.Reason == mirror.ReasonWaiting {
			return condition(kind, metav1.ConditionUnknown, reasonPending, "it has not been judged yet: too much is at fault")
		}
		message := problemText(r)
		if r.Kept {
			message += ". Its last accepted version stays in force"
		}
		return condition(kind, metav1.ConditionFalse, r.Reason, message)
	}
	if n, reason := v.quarantined(o); n > 0 {
		return condition(kind, metav1.ConditionFalse, reasonQuarantined,
			fmt.Sprintf("%d of %d replicas do not serve it: generation %s, which brings it, %s", n, len(v.fleet.replicas), short(v.decision.Generation), reason))
	}
	message := "it is valid"
	for i := range o.Warnings {
		message += ". Warning: " + o.Warnings[i].String()
	}
	return condition(kind, metav1.ConditionTrue, v1alpha1.ConditionAccepted, message)
}

// quarantined returns how many replicas never serve the generation that has the object as
// it stands, and do not have it in what they serve, and why.
func (v *view) quarantined(o *mirror.Judged) (n int, reason string) {
	for i := range v.fleet.replicas {
		r := &v.fleet.replicas[i]
		if r.failure != "" || r.said.Mirror == nil {
			continue
		}
		serves, known := v.versions[r.said.Mirror.Generation]
		if !known || serves[o.Key] == o.Version {
			continue
		}
		for _, q := range r.said.Mirror.Quarantined {
			if q.Generation == v.decision.Generation {
				n, reason = n+1, q.Reason
				break
			}
		}
	}
	return n, reason
}

// resolved says whether what the object names is there.
func resolved(o *mirror.Judged) metav1.Condition {
	const kind = v1alpha1.ConditionResolvedRefs
	switch r := o.Refused; {
	case r != nil && r.Reason == mirror.ReasonUnresolved:
		return condition(kind, metav1.ConditionFalse, mirror.ReasonUnresolved, problemText(r))
	case r != nil && r.Reason == mirror.ReasonWaiting:
		return condition(kind, metav1.ConditionUnknown, reasonPending, "it has not been judged yet")
	}
	return condition(kind, metav1.ConditionTrue, v1alpha1.ConditionResolvedRefs, "the Secrets and ConfigMaps that it names are there")
}

// programmed says how many ready replicas serve the object as it stands.
func (v *view) programmed(o *mirror.Judged, accepted *metav1.Condition) metav1.Condition {
	const kind = v1alpha1.ConditionProgrammed
	has, held, unknown, all := 0, 0, 0, len(v.fleet.replicas)
	for i := range v.fleet.replicas {
		r := &v.fleet.replicas[i]
		generation := r.generation()
		versions, known := v.versions[generation]
		switch {
		case known && versions[o.Key] == o.Version && o.Refused == nil:
			has++
		case generation != "" && !known:
			unknown++
		case generation != "" && r.said.Mirror.Next != nil && len(r.said.Mirror.Next.Lost) > 0:
			held++
		}
	}
	message := fmt.Sprintf("%d/%d replicas", has, all)
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
	case accepted.Status != metav1.ConditionTrue:
		return condition(kind, metav1.ConditionFalse, "NotAccepted", message)
	case held > 0:
		return condition(kind, metav1.ConditionFalse, "HeldBack", message+
			fmt.Sprintf("; %d hold the next generation back, because it has lost much: see Registry %s", held, v1alpha1.RegistryName))
	case unknown > 0 && has+unknown == all:
		return condition(kind, metav1.ConditionUnknown, "OtherGeneration", message+
			fmt.Sprintf("; %d serve a generation that was decided before the controller started, or otherwise", unknown))
	}
	return condition(kind, metav1.ConditionFalse, reasonPending, message)
}

// reachable says whether every webhook of a configuration takes part on every replica.
func (v *view) reachable(configuration string) metav1.Condition {
	const kind = v1alpha1.ConditionReachable
	pending, reasons, said := map[string]int{}, map[string]string{}, 0
	for i := range v.fleet.replicas {
		r := &v.fleet.replicas[i]
		if r.failure != "" {
			continue
		}
		said++
		seen := map[string]bool{}
		for _, p := range r.pending[configuration] {
			if _, name, _ := strings.Cut(p.Webhook, "/"); !seen[name] {
				seen[name] = true
				pending[name]++
				reasons[name] = p.Reason
			}
		}
	}
	switch {
	case said == 0:
		return condition(kind, metav1.ConditionUnknown, reasonNoReplicas, "no replica says")
	case len(pending) == 0:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ConditionReachable, "every webhook takes part")
	}
	var lines []string
	for name, n := range pending {
		lines = append(lines, fmt.Sprintf("%s does not take part yet on %d of %d replicas: %s", name, n, said, reasons[name]))
	}
	slices.Sort(lines)
	return condition(kind, metav1.ConditionFalse, reasonPending, joined(lines))
}

// namespacesSynced says whether the namespaces of a cluster are known. ok is false where
// the cluster's API does not tell them.
func (v *view) namespacesSynced(cluster string) (c metav1.Condition, ok bool) {
	const kind = v1alpha1.ConditionNamespacesSynced
	if v.decision.Kubeconfigs[cluster] == nil {
		return metav1.Condition{}, false
	}
	synced, said, why := 0, 0, ""
	for i := range v.fleet.replicas {
		n := v.fleet.replicas[i].namespaces[cluster]
		if n == nil {
			continue
		}
		said++
		switch {
		case n.Synced && !n.Stale && n.Credential == "":
			synced++
		case n.Error != "":
			why = n.Error
		case n.Credential != "":
			why = n.Credential
		}
	}
	message := fmt.Sprintf("%d/%d replicas", synced, said)
	if why != "" {
		message += ": " + why
	}
	switch {
	case said == 0:
		return condition(kind, metav1.ConditionUnknown, reasonNoReplicas, "no replica says"), true
	case synced == said:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ConditionNamespacesSynced, message), true
	}
	return condition(kind, metav1.ConditionFalse, "Stale", message), true
}

// registrationCurrent says whether the cluster has what would be printed for it.
func (v *view) registrationCurrent(cluster string) (c metav1.Condition, ok bool) {
	compiled := v.decision.Clusters[cluster]
	if compiled == nil || compiled.Registration == v1alpha1.RegistrationOff {
		return metav1.Condition{}, false
	}
	said, has := v.verdicts[cluster]
	if !has {
		return condition(v1alpha1.ConditionRegistrationCurrent, metav1.ConditionUnknown, reasonPending, "nobody has looked yet"), true
	}
	return condition(v1alpha1.ConditionRegistrationCurrent, said.status, said.reason, said.message), true
}

// problemText is what is said of an object that is refused, in the words of "dispatcher
// validate".
func problemText(r *mirror.Refused) string {
	var lines []string
	for i := range r.Problems {
		p := r.Problems[i]
		if p.Object == r.Object {
			p.Object = "" // it is the object that has the condition
		}
		lines = append(lines, p.String())
	}
	if len(lines) == 0 {
		return "it is at fault"
	}
	return strings.Join(lines, "; ")
}

// short is the beginning of the name of a generation.
func short(generation string) string { return generation[:min(len(generation), 12)] }
