// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// What is wrong with the mirror is said, with what to do; nothing else is.
func TestMirrorNotices(t *testing.T) {
	now := time.Now()
	const (
		served, next = "0123456789abcdef", "fedcba9876543210"
		stays        = "Generation 0123456789ab is served until then."
	)
	well := func(change func(*mirrorstatus.Mirror)) *mirrorstatus.Mirror {
		m := &mirrorstatus.Mirror{Generation: served, Heard: now.Add(-9 * time.Minute)}
		change(m)
		return m
	}
	runbook := func(alert string) string {
		return "https://github.com/admission-dispatcher/dispatcher/blob/main/docs/runbooks/" + alert + ".md"
	}
	refused := func(names ...string) (list []mirrorstatus.RefusedObject) {
		for _, name := range names {
			list = append(list, mirrorstatus.RefusedObject{Object: "Cluster/" + name, Reason: mirrorstatus.Invalid})
		}
		return list
	}
	for name, c := range map[string]struct {
		mirror *mirrorstatus.Mirror
		want   []status.Notice
	}{
		"none":    {nil, nil},
		"well":    {well(func(*mirrorstatus.Mirror) {}), nil},
		"pending": {well(func(m *mirrorstatus.Mirror) { m.Next = &mirrorstatus.NextGeneration{Generation: next, At: now} }), nil},
		"held back": {well(func(m *mirrorstatus.Mirror) {
			m.Next = &mirrorstatus.NextGeneration{Generation: next, Lost: []string{"every Plugin (there were 2)", "3 of 4 Clusters"}}
		}), []status.Notice{{
			Severity: "critical", Text: "Generation fedcba987654 of the registry is held back: it has lost every Plugin (there were 2), 3 of 4 Clusters", Affects: stays,
			Remedy:  "If that is meant: kubectl annotate registries.dispatcher.dev registry --overwrite dispatcher.dev/confirm-shrink=" + next,
			Runbook: runbook("DispatcherGenerationHeldBack"),
		}}},
		"quarantined": {well(func(m *mirrorstatus.Mirror) {
			m.Next = &mirrorstatus.NextGeneration{Generation: next, Quarantined: true}
			m.Quarantined = []mirrorstatus.QuarantinedGeneration{{Generation: "other", Reason: "no"}, {Generation: next, Reason: "it is not alive"}}
		}), []status.Notice{{
			Severity: "critical", Text: "Generation fedcba987654 of the registry is quarantined", Affects: stays, Error: "it is not alive",
			Remedy: "Take back the last change of an object.", Runbook: runbook("DispatcherGenerationQuarantined"),
		}}},
		"quarantined once": {well(func(m *mirrorstatus.Mirror) {
			m.Quarantined = []mirrorstatus.QuarantinedGeneration{{Generation: "other", Reason: "no"}}
		}), nil},
		"crashed": {well(func(m *mirrorstatus.Mirror) { m.Crashed = true }), []status.Notice{{
			Severity: "critical", Text: "The mirror of the registry crashes with what the API has", Affects: stays,
			Remedy: "Take back the last change of an object.", Runbook: runbook("DispatcherGenerationQuarantined"),
		}}},
		"one refused": {well(func(m *mirrorstatus.Mirror) { m.Refused, m.RefusedCount = refused("a"), 1 }), []status.Notice{{
			Severity: "warning", Text: "1 object of the registry is not served as in the API: Cluster/a (Invalid)", Runbook: runbook("DispatcherObjectsRefused"),
		}}},
		"many refused": {well(func(m *mirrorstatus.Mirror) { m.Refused, m.RefusedCount = refused("a", "b", "c", "d"), 300 }), []status.Notice{{
			Severity: "warning", Text: "300 objects of the registry are not served as in the API: Cluster/a (Invalid), Cluster/b (Invalid), Cluster/c (Invalid), 297 others",
			Runbook: runbook("DispatcherObjectsRefused"),
		}}},
		"silent": {well(func(m *mirrorstatus.Mirror) { m.Heard = now.Add(-11 * time.Minute) }), []status.Notice{{
			Severity: "warning", Text: "The API of the registry was last heard 11m0s ago", Affects: "What is served stays.", Runbook: runbook("DispatcherRegistryUnheard"),
		}}},
		"never heard": {well(func(m *mirrorstatus.Mirror) {
			m.Heard, m.Resources = time.Time{}, []mirrorstatus.MirroredResource{{Resource: "clusters"}, {Resource: "plugins", Error: "forbidden"}}
		}), []status.Notice{{
			Severity: "warning", Text: "The API of the registry has not answered yet", Affects: "What is served stays.", Error: "plugins: forbidden",
			Runbook: runbook("DispatcherRegistryUnheard"),
		}}},
		"no file": {&mirrorstatus.Mirror{Error: "its status cannot be read: no such file"}, []status.Notice{{
			Severity: "critical", Text: "The mirror of the registry does not work", Error: "its status cannot be read: no such file",
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, (&status.Status{Now: now, Mirror: c.mirror}).FindNotices(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}
