// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// figures are run by name only, or in full size: they take a minute each, and
// report.
func figure(t *testing.T, id string) {
	t.Helper()
	if !wanted(id) || only == "" && !full {
		t.Skip("ROW=" + id + " or FULL=1 runs it")
	}
}

// willing are hurt webhooks that allow everything, so that no denial ends a call
// early.
func willing() []history.Webhook {
	return []history.Webhook{{Name: hurtFail, Phase: history.Validating, FailurePolicy: history.Fail, SideEffects: history.NoSideEffects, Timeout: 5 * time.Second, Truth: script.Willing}}
}

// TestGoodput is figure P12: what is answered at one to ten times the load that a
// limit of admissions lets in, each as a share of the best of them.
func TestGoodput(t *testing.T) {
	figure(t, "P12")
	const places, takes = 8, 100 * time.Millisecond
	loads := []float64{1, 2, 5, 10}
	rates, shed := make([]float64, len(loads)), make([]time.Duration, len(loads))
	for i, times := range loads {
		r := &row{id: "P12", what: "overload", rate: times * places / takes.Seconds() / 3, during: 8 * time.Second, hooks: willing(), sheds: "*",
			process: fmt.Sprintf("limits: {admissions: %d, admissionsPerCluster: %[1]d}\n", places), fault: behave(script.Behaviour{Delay: takes})}
		_, rec := r.run(t)
		good := 0
		for _, c := range rec.affected() {
			switch {
			case c.Allowed && !c.Exempt:
				good++
			case c.Code == 429:
				shed[i] = max(shed[i], c.Done-c.Sent)
			}
		}
		rates[i] = float64(good) / (rec.repaired - rec.broken).Seconds()
	}
	for i, share := range ofBest(rates) {
		progress("P12 at %2.0f x: %.0f answered a second, %.0f %% of the best; shed within %v", loads[i], rates[i], share, shed[i].Round(time.Millisecond))
	}
}

// ofBest returns each rate in percent of the best. A load that arrives at random is
// shed in part before it reaches the limit, so that the peak is not known beforehand.
func ofBest(rates []float64) []float64 {
	best := slices.Max(rates)
	shares := make([]float64, len(rates))
	for i, rate := range rates {
		shares[i] = 100 * rate / best
	}
	return shares
}

func TestOfBest(t *testing.T) {
	for _, tt := range []struct{ rates, want []float64 }{
		{[]float64{100, 127, 142, 142}, []float64{70, 89, 100, 100}}, // the best comes late
		{[]float64{80, 72, 60, 40}, []float64{100, 90, 75, 50}},
	} {
		got := ofBest(tt.rates)
		for i := range got {
			got[i] = math.Round(got[i])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.rates, got, tt.want)
		}
	}
}
