// SPDX-License-Identifier: Apache-2.0

package random

import (
	"fmt"

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
	if w.percent(65) {
		return nil
	}
	var all []admissionregistrationv1.MatchCondition
	for i, expression := range some(w.source, 1, 3, expressions...) {
		all = append(all, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("condition-%d", i), Expression: expression})
	}
	return all
}
