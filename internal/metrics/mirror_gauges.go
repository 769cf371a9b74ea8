// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
)

// The families of the mirror that the configuration comes from.
const (
	mirrorInfo        = "dispatcher.mirror.info"
	mirrorObjects     = "dispatcher.mirror.objects"
	mirrorServed      = "dispatcher.mirror.generation.timestamp"
	mirrorBehind      = "dispatcher.mirror.behind"
	mirrorQuarantined = "dispatcher.mirror.quarantined"
	mirrorHeard       = "dispatcher.mirror.api.heard.timestamp"
)

func mirrorFamilies() []Family {
	return []Family{
		{mirrorInfo, ObservedGauge, "", labels(named("generation")),
			"1, with the short name of the generation of the registry that the mirror serves. Processes without a mirror (`sources[].mirror`) have none of these.", nil},
		{mirrorServed, ObservedGauge, "s", nil,
			"When that generation began to be served, in Unix seconds.", nil},
		{mirrorObjects, ObservedGauge, "{object}", labels(closed("state", "accepted", "invalid", "conflict", "unresolved", "waiting")),
			"Objects of the registry: those in the generation that is served, and those that are refused as they stand in the API, by reason. One whose last accepted version is served counts as both.", nil},
		{mirrorBehind, ObservedGauge, "", labels(closed("reason", mirrorstatus.Pending, mirrorstatus.HeldBack, mirrorstatus.Quarantine, mirrorstatus.CrashedWith)),
			"1 for the reason why the generation that is served is older than what was accepted of the API, else 0: the next one waits for its time, is held back until somebody confirms what it has lost, is quarantined, or the mirror crashes with what the API has.", nil},
		{mirrorQuarantined, ObservedGauge, "{generation}", nil,
			"Generations that are not served any more because the dispatcher was not alive with them, at most 16.", nil},
		{mirrorHeard, ObservedGauge, "s", nil,
			"When the API last answered the mirror, in Unix seconds, for the resource of which that is the longest ago. 0: one has never been listed, or the mirror's status cannot be read.", nil},
	}
}

// mirror reads the status of the mirror, if there is one.
func (r reading) mirror() {
	m := r.source.Mirror()
	if m == nil {
		return
	}
	if m.Generation != "" {
		r.gauge(mirrorInfo, 1, attribute.String("generation", mirrorstatus.Short(m.Generation)))
		r.gauge(mirrorServed, unix(m.Since))
	}
	r.gauge(mirrorObjects, int64(m.Accepted()), attribute.String("state", "accepted"))
	for reason, state := range map[string]string{mirrorstatus.Invalid: "invalid", mirrorstatus.Conflict: "conflict", mirrorstatus.Unresolved: "unresolved", mirrorstatus.Waiting: "waiting"} {
		r.gauge(mirrorObjects, int64(m.RefusedByReason[reason]), attribute.String("state", state))
	}
	because := m.BehindBecause()
	for _, reason := range []string{mirrorstatus.Pending, mirrorstatus.HeldBack, mirrorstatus.Quarantine, mirrorstatus.CrashedWith} {
		r.gauge(mirrorBehind, number(reason == because), attribute.String("reason", reason))
	}
	r.gauge(mirrorQuarantined, int64(len(m.Quarantined)))
	r.gauge(mirrorHeard, unix(m.Heard))
}

// unix is a time in Unix seconds; 0: there is none.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
