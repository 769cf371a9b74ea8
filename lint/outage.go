// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// vital is W1: webhooks that fail closed and want what a cluster needs to heal.
func (l *linter) vital() {
	l.each(func(w *webhook) {
		if !w.fails {
			return
		}
		for i := range w.Rules {
			words, stops, where := l.stops(w, i)
			if len(words) == 0 {
				continue
			}
			level := Warning
			if IsWide(&w.Rules[i]) {
				level = Error
			}
			l.report(w, level, w.at.Child("rules").Index(i), "", "with failurePolicy Fail an outage of this webhook stops "+strings.Join(words, ", ")+where, stops...)
		}
	})
}

// stops returns what the rule stops, in words and request by request, and where if that
// is not everywhere.
func (l *linter) stops(w *webhook, rule int) (words, stops []string, where string) {
	var reached exposure
	for _, x := range l.vitals(version(&w.Rules[rule])) {
		if w.ours && x.ours || !w.wants(rule, x) || !l.exposed(w, x, &reached) {
			continue
		}
		if !slices.Contains(words, x.stops) {
			words = append(words, x.stops)
		}
		if id := x.id(); !slices.Contains(stops, id) {
			stops = append(stops, id)
		}
	}
	if q, ok := example(&w.Rules[rule], metav1.NamespaceSystem); ok && !slices.Contains(words, stopsSystem) {
		if x := l.witness(q, version(&w.Rules[rule]), nil); w.wants(rule, x) && l.exposed(w, x, &reached) {
			words, stops = append(words, stopsSystem), append(stops, x.id())
		}
	}
	return words, stops, reached.String()
}

// catchAll is W2: rules that select every resource, unless conditions or selectors leave
// out the busiest of all.
func (l *linter) catchAll() {
	l.each(func(w *webhook) {
		for i := range w.Rules {
			r := &w.Rules[i]
			if !IsWide(r) || w.ours && !l.wantsLeases(w, i) {
				continue
			}
			text := "selects every resource of every group"
			if slices.Contains(r.Operations, admissionregistrationv1.OperationAll) || slices.Contains(r.Operations, admissionregistrationv1.Connect) {
				text += ", and CONNECT to each"
			}
			l.report(w, Warning, w.at.Child("rules").Index(i), "", text)
		}
	})
}

func (l *linter) wantsLeases(w *webhook, rule int) bool {
	return slices.ContainsFunc(l.vitals(version(&w.Rules[rule])), func(x *witness) bool { return x.stops == stopsLeases && w.wants(rule, x) })
}

// everywhere is W3: webhooks that fail closed without leaving out any namespace.
func (l *linter) everywhere() {
	l.each(func(w *webhook) {
		if s := w.NamespaceSelector; !w.fails || s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
			return
		}
		for i := range w.Rules {
			q, ok := example(&w.Rules[i], metav1.NamespaceSystem)
			if ok && w.wants(i, l.witness(q, version(&w.Rules[i]), nil)) {
				l.report(w, Warning, w.at.Child("namespaceSelector"), "", "is absent, and with failurePolicy Fail an outage of this webhook stops writes in every namespace, its own among them")
				return
			}
		}
	})
}

// pods is the request by which a pod of a namespace comes into being.
func pods(namespace string) request {
	return request{resource: "pods", kind: "Pod", namespace: namespace, name: "x", operation: codec.Create,
		user: "system:serviceaccount:kube-system:replicaset-controller", groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}}
}

// loops is W4: webhooks that fail closed and must answer before their own pods start,
// by themselves or in a circle of several.
func (l *linter) loops() {
	var served []*webhook
	l.each(func(w *webhook) {
		if w.fails && w.ClientConfig.Service != nil {
			served = append(served, w)
		}
	})
	needs := make([][]bool, len(served)) // i wants the pods of j
	for i, w := range served {
		needs[i] = make([]bool, len(served))
		for j, other := range served {
			s := other.ClientConfig.Service
			needs[i][j] = w.wanted(l, pods(s.Namespace), l.Services[ServiceName{s.Namespace, s.Name}].Selector)
		}
		if needs[i][i] {
			l.report(w, Error, w.at.Child("namespaceSelector"), "", "selects namespace "+w.ClientConfig.Service.Namespace+", where the webhook's own pods run: while it is down none of them can be created")
		}
	}
	l.circles(served, needs)
}

// circles reports webhooks of several namespaces that wait for each other, each circle
// once, at its first webhook.
func (l *linter) circles(served []*webhook, needs [][]bool) {
	for k := range needs {
		for i := range needs {
			for j := range needs {
				needs[i][j] = needs[i][j] || needs[i][k] && needs[k][j]
			}
		}
	}
	told := map[int]bool{}
	for i, w := range served {
		others := []string{}
		for j, other := range served {
			if i == j || !needs[i][j] || !needs[j][i] || other.ClientConfig.Service.Namespace == w.ClientConfig.Service.Namespace {
				continue
			}
			if !told[i] && !slices.Contains(others, other.of.Name+"/"+other.Name) {
				others = append(others, other.of.Name+"/"+other.Name)
			}
			told[j] = true
		}
		if len(others) > 0 {
			l.report(w, Error, w.at.Child("namespaceSelector"), "", "the pods of this webhook wait for "+strings.Join(others, ", ")+", and theirs for it: after an outage of all neither starts")
		}
	}
}
