// SPDX-License-Identifier: Apache-2.0

package random

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// expressions are those of matchConditions. Some cannot be evaluated for some
// requests: on DELETE there is no object, and labels and extra may be absent.
var expressions = []string{
	"true",
	"request.operation != 'DELETE'",
	"request.userInfo.username == 'ann'",
	"'dev' in request.userInfo.groups",
	"!request.userInfo.username.startsWith('system:node:')",
	"request.dryRun",
	"request.subResource != 'scale'",
	"request.resource.group in ['', 'apps', 'example.com']",
	"request.requestKind.kind == 'Pod'",
	"request.namespace != 'bank'",
	"object == null || has(object.metadata.labels)",
	"has(object.metadata.name)",
	"object.metadata.labels['tier'] == 'a'",
	"!('tier' in object.metadata.labels)",
	"oldObject != null",
	"oldObject.metadata.labels.exists(k, k == 'team')",
	"request.userInfo.extra['example.com/team'].exists(t, t == 'red')",
	"object.spec.replicas > 1",
	"object.spec.parts.size() < 4",
	"object.metadata.annotations['example.com/a'].matches('^[0-9]+$')",
}

func (w *writer) conditions() []admissionregistrationv1.MatchCondition {
	if !w.conditioned && w.percent(65) {
		return nil
	}
	chosen := some(w.source, 1, 3, expressions...)
	for i := range chosen {
		if w.conditioned || w.percent(50) {
			chosen[i] = w.truth(2)
		}
	}
	var all []admissionregistrationv1.MatchCondition
	for i, expression := range chosen {
		all = append(all, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("condition-%d", i), Expression: expression})
	}
	return all
}

// truth returns an expression of the forms that the dispatcher evaluates without CEL,
// more often true than false. Where something is absent CEL has to say what that is.
func (s source) truth(depth int) string {
	if depth > 0 {
		switch s.IntN(6) {
		case 0:
			return "!(" + s.truth(depth-1) + ")"
		case 1, 2, 3:
			return "(" + s.truth(depth-1) + pick(s, " && ", " || ", " || ") + s.truth(depth-1) + ")"
		}
	}
	switch s.IntN(11) {
	case 0:
		return pick(s, "true", "false", "!request.dryRun", "request.dryRun == false", "object != null", "oldObject == null")
	case 1, 2:
		return s.text() + pick(s, " == ", " != ", " != ") + s.text()
	case 3:
		return s.text() + " in [" + s.word() + ", " + s.word() + ", " + s.word() + "]"
	case 4, 5:
		return pick(s, "", "!") + "(" + s.text() + " in " + s.collection() + ")"
	case 6:
		return pick(s, "", "!") + s.text() + pick(s, ".startsWith(", ".endsWith(", ".contains(") + pick(s, "'system:'", "'e'", "''", s.text()) + ")"
	case 7:
		return s.text() + ".matches(" + pick(s, "'^[a-z]+$'", "'(shop|bank)'", "''", "'^system:node'") + ")"
	case 8:
		at := s.collection()
		return "has(" + at + ") && size(" + at + ")" + pick(s, " > 0", " == 1", " < 2", " != 0")
	case 9:
		field := s.selected()
		return "has(" + field + ") && " + field + pick(s, " == ", " != ") + s.word()
	}
	return "has(" + pick(s, s.selected(), s.collection()) + ")"
}

// word returns what fields of Cases are, as a literal.
func (s source) word() string {
	return fmt.Sprintf("%q", pick(s, "", "a", "b", "1", "2", "v1", "web", "db", "shop", "bank", "kube-system", "ann", "dev", "ops", "apps", "pods", "Pod",
		"CREATE", "UPDATE", "status", "scale", "tier", "team", "system:masters", "jürgen \"x\"\n"))
}

func (s source) text() string {
	if s.percent(25) {
		return s.word()
	}
	return s.field()
}

// field returns a field that is a string where it is there.
func (s source) field() string {
	object := pick(s, "object", "object", "oldObject")
	switch s.IntN(3) {
	case 0:
		return object + ".metadata" + pick(s, ".name", ".namespace", "['name']", ".generateName", ".labels.tier", ".labels['example.com/zone']", ".annotations.b",
			".annotations['example.com/a']", ".labels.team", ".deletionTimestamp")
	case 1:
		return object + pick(s, ".kind", ".apiVersion")
	}
	return "request." + pick(s, "kind.group", "kind.version", "kind.kind", "resource.group", "resource.version", "resource.resource", "subResource",
		"requestKind.version", "requestResource.resource", "requestSubResource", "name", "namespace", "operation", "userInfo.username", "userInfo.uid")
}

// selected is a field that has() takes.
func (s source) selected() string {
	field := s.field()
	for strings.Contains(field, "[") {
		field = s.field()
	}
	return field
}

func (s source) collection() string {
	return pick(s, "request.userInfo.groups", "object.metadata.labels", "oldObject.metadata.labels", "object.metadata.annotations")
}
