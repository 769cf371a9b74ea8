// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// registered is W8: what the cluster calls, beside what the dispatcher calls for it.
func (l *linter) registered() {
	for _, w := range l.webhooks {
		if w.neutral {
			l.neutralised(w)
			continue
		}
		if !w.ours && l.Registered[w.of.Name+"/"+w.Name] {
			l.report(w, Error, w.at, w.Name, "is called by the dispatcher, too: each request goes to it twice")
		}
		if stops := l.writesAtStart(w); w.ours && w.fails && len(stops) > 0 {
			l.report(w, Error, w.at, w.Name, "wants what the API server writes at its start: with the dispatcher down no API server starts", stops...)
		}
	}
	for i := range l.Generated {
		l.current(&l.Generated[i])
	}
	for _, s := range l.APIServices {
		if l.Callers != nil && !l.Callers[s.Group] {
			l.reportAll(-1, Warning, s.Name, fmt.Sprintf("is served by %s/%s, which calls the same webhooks, and no caller of the Cluster serves group %s: its calls get 403, and its failurePolicy decides", s.Service.Namespace, s.Service.Name, s.Group))
		}
	}
}

// neutralised reports a webhook that was left to the dispatcher, which does not call it:
// nobody does.
func (l *linter) neutralised(w *webhook) {
	left := slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == DispatchedCondition })
	if left && l.Registered != nil && !l.Registered[w.of.Name+"/"+w.Name] {
		l.report(w, Error, w.at.Child("matchConditions"), w.Name, "is left to the dispatcher, which does not call it: nobody does; take the condition "+DispatchedCondition+" back, or register the webhook")
	}
}

// writesAtStart are the writes of the API server itself that the webhook wants.
func (l *linter) writesAtStart(w *webhook) (stops []string) {
	for i := range w.Rules {
		for _, x := range l.vitals(version(&w.Rules[i])) {
			if x.user == apiserver.user && w.wants(i, x) && !slices.Contains(stops, x.id()) {
				stops = append(stops, x.id())
			}
		}
	}
	return stops
}

// current compares what should be registered with what is.
func (l *linter) current(wanted *Configuration) {
	at := slices.IndexFunc(l.Configurations, func(c Configuration) bool { return c.Mutating == wanted.Mutating && c.Name == wanted.Name })
	if at < 0 {
		l.reportAll(-1, Error, wanted.Object, "is not registered: the cluster does not call the dispatcher for what it selects")
		return
	}
	is := l.Configurations[at].Webhooks
	for i := range wanted.Webhooks {
		w := &wanted.Webhooks[i]
		found := slices.IndexFunc(is, func(o admissionregistrationv1.MutatingWebhook) bool { return o.Name == w.Name })
		switch {
		case found < 0:
			l.reportAll(at, Error, w.Name, "is missing: the registration is not current")
		case !sameEntry(w, &is[found]):
			l.reportAll(at, Error, w.Name, "is not what would be registered now: the registration is not current")
		}
	}
	for i := range is {
		if strings.HasSuffix(is[i].Name, OwnSuffix) && !slices.ContainsFunc(wanted.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == is[i].Name }) {
			l.reportAll(at, Error, is[i].Name, "would not be registered now: the registration is not current")
		}
	}
}

// enforced are labels by which managed clouds leave their own namespaces out of every
// webhook: that they add it is no difference.
func enforced() []string {
	return []string{"control-plane", "kubernetes.azure.com/managedby"}
}

func sameEntry(wanted, is *admissionregistrationv1.MutatingWebhook) bool {
	a, b := wanted.DeepCopy(), is.DeepCopy()
	for _, w := range []*admissionregistrationv1.MutatingWebhook{a, b} {
		w.ReinvocationPolicy = nil // of one kind only; ours is the default
		w.NamespaceSelector, w.ObjectSelector = orEmpty(w.NamespaceSelector), orEmpty(w.ObjectSelector)
		for i := range w.Rules {
			w.Rules[i] = withScope(w.Rules[i])
		}
	}
	b.NamespaceSelector.MatchExpressions = slices.DeleteFunc(b.NamespaceSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return exempts(r) && slices.Contains(enforced(), r.Key) && !slices.ContainsFunc(a.NamespaceSelector.MatchExpressions, func(o metav1.LabelSelectorRequirement) bool { return o.Key == r.Key })
	})
	for _, w := range []*admissionregistrationv1.MutatingWebhook{a, b} {
		if len(w.NamespaceSelector.MatchExpressions) == 0 {
			w.NamespaceSelector.MatchExpressions = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// hosting is W9: the dispatcher's own cluster must start without it.
func (l *linter) hosting() {
	if l.Tier == nil {
		return
	}
	if len(l.Tier.Namespaces) == 0 {
		l.reportAll(-1, Error, "", "the cluster hosts the dispatcher, and no namespace is named that must start without it")
		return
	}
	l.each(func(w *webhook) {
		if !w.ours || !w.fails {
			return
		}
		for _, namespace := range l.Tier.Namespaces {
			if w.wanted(l, pods(namespace), nil) {
				l.report(w, Error, w.at.Child("namespaceSelector"), namespace, "runs the dispatcher, or what it needs to start, and its pods wait for the dispatcher")
			}
		}
	})
}
