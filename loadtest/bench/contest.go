// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// busyCallers keep the process under test busy where its CPU is measured.
const busyCallers = 8

// round is what one target did in one measurement.
type round struct {
	perAdmission float64 // microseconds of CPU
	rate         float64 // admissions that were allowed, a second
	busy         float64 // share of the time in which the target was running
	tally
}

// measureRound floods a target.
func (l *lab) measureRound(w *lane, review *payload.Review, callers int) (round, error) {
	before, err := w.cpu()
	if err != nil {
		return round{}, err
	}
	t := w.flood(review, callers, l.span)
	after, err := w.cpu()
	if err != nil {
		return round{}, err
	}
	return round{
		perAdmission: float64((after - before).Microseconds()) / float64(max(t.allowed, 1)),
		rate:         float64(t.allowed) / t.took.Seconds(),
		busy:         (after - before).Seconds() / t.took.Seconds(),
		tally:        t,
	}, nil
}

// contest floods several targets in turn, and returns each one's rounds.
func (l *lab) contest(s *stage, lanes []*lane, review payload.Review, callers int) ([][]round, error) {
	all := make([][]round, len(lanes))
	err := l.apart(s, func() error {
		for _, w := range lanes {
			if err := w.warmUp(&review, callers, l.span); err != nil {
				return err
			}
		}
		for range l.rounds {
			for i, w := range lanes {
				r, err := l.measureRound(w, &review, callers)
				if err != nil {
					return err
				}
				all[i] = append(all[i], r)
			}
		}
		return nil
	})
	return all, err
}

// failures says what went wrong in the rounds, if anything.
func failures(rounds [][]round) string {
	for _, list := range rounds {
		for _, r := range list {
			if r.failed > 0 {
				return fmt.Sprintf("%d of %d failed in a round, such as %v", r.failed, r.failed+r.allowed, r.failure)
			}
		}
	}
	return ""
}

// apart runs f while this process leaves the core of the process under test alone.
func (l *lab) apart(s *stage, f func() error) error {
	if err := moveTo(s.others); err != nil {
		return err
	}
	defer func() { _ = moveTo(s.everywhere()) }()
	return f()
}

func values(rounds []round, of func(round) float64) []float64 {
	list := make([]float64, len(rounds))
	for i, r := range rounds {
		list[i] = of(r)
	}
	return list
}

func cpu(r round) float64  { return r.perAdmission }
func rate(r round) float64 { return r.rate }
func busy(r round) float64 { return r.busy }

// contestant is a target whose CPU is compared, asked for a cluster with so many
// webhooks.
type contestant struct {
	*target
	webhooks int
}

// race measures the CPU of each contestant.
func (l *lab) race(s *stage, review payload.Review, contestants ...contestant) ([][]round, error) {
	var lanes []*lane
	for _, c := range contestants {
		w, err := l.lane(s, c.target, caller(c.webhooks))
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, w)
	}
	return l.contest(s, lanes, review, busyCallers)
}
