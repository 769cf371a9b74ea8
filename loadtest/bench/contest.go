// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// busyCallers keep the process under test busy where its CPU is measured.
const busyCallers = 8

// steadyRate is the admissions a second of a figure that is measured in a process
// that waits most of the time: caches are cold then, as they are in production.
const steadyRate = 4000

// round is what one target did in one measurement.
type round struct {
	perAdmission float64 // microseconds of CPU
	rate         float64 // admissions that were allowed, a second
	busy         float64 // share of the time in which the target was running
	tally
}

// measureRound floods a target with so many callers, or sends at a rate that is not 0.
func (l *lab) measureRound(w *lane, review *payload.Review, callers int, rate float64) (round, error) {
	before, err := w.cpu()
	if err != nil {
		return round{}, err
	}
	var t tally
	if rate == 0 {
		t = w.flood(review, callers, l.span)
	} else if t, err = w.steady(review, rate, l.span); err != nil {
		return round{}, err
	}
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

// alternate measures several lanes in turn, and returns each one's rounds.
func (l *lab) alternate(s *stage, lanes []*lane, review payload.Review, callers int) ([][]round, error) {
	all := make([][]round, len(lanes))
	err := l.apart(s, func() error {
		for _, w := range lanes {
			if err := w.warmUp(&review, callers, l.span); err != nil {
				return err
			}
		}
		return l.rotate(all, lanes, &review, callers, 0)
	})
	return all, err
}

// rotate adds rounds to all, one of each lane after the other.
func (l *lab) rotate(all [][]round, lanes []*lane, review *payload.Review, callers int, rate float64) error {
	for range l.rounds {
		for i, w := range lanes {
			r, err := l.measureRound(w, review, callers, rate)
			if err != nil {
				return err
			}
			all[i] = append(all[i], r)
		}
	}
	return nil
}

// compare measures several dispatchers in turn, with so many webhooks.
func (l *lab) compare(s *stage, webhooks int, dispatchers ...*target) ([][]round, error) {
	var lanes []*lane
	for _, t := range dispatchers {
		w, err := l.lane(s, t, caller(webhooks))
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, w)
	}
	return l.alternate(s, lanes, payload.PodCreate(), busyCallers)
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

// contest is a review, and those whose CPU it costs is measured in turn: peers by
// their names, and the dispatcher by the cluster that calls it.
type contest struct {
	review   func() payload.Review
	entrants []string
}

// standing is how a contest came out.
type standing struct {
	rounds map[string][]round // by entrant; without nginx, where that is not installed
	remark string             // what makes all of it doubtful
}

// hold measures everybody's CPU, at saturation or at a rate that is not 0.
func (c contest) hold(l *lab, rate float64) (standing, error) {
	s, err := l.stage()
	if err != nil {
		return standing{}, err
	}
	review := c.review()
	how := "at saturation"
	if rate > 0 {
		how = "at " + perSecond(rate)
	}
	return remember(l, fmt.Sprintf("CPU of %s %s: %s", review.Name, how, strings.Join(c.entrants, ", ")), func() (standing, error) {
		names, lanes, err := c.lanes(l, s)
		if err != nil {
			return standing{}, err
		}
		all, remark, err := l.compete(s, lanes, review, rate)
		got := standing{map[string][]round{}, remark}
		for i, name := range names {
			got.rounds[name] = all[i]
		}
		return got, err
	})
}

// lanes returns the entrants that there are.
func (c contest) lanes(l *lab, s *stage) (names []string, lanes []*lane, err error) {
	for _, name := range c.entrants {
		t, cluster := s.dispatcher, name
		switch name {
		case nginx:
			t, cluster = s.nginx, caller(1)
		case floor:
			t, cluster = s.floor, caller(1)
		}
		if t == nil {
			continue
		}
		w, err := l.lane(s, t, cluster)
		if err != nil {
			return nil, nil, err
		}
		names, lanes = append(names, name), append(lanes, w)
	}
	return names, lanes, nil
}

// compete measures the lanes in turn, at saturation or at the rate as far as this
// machine carries it.
func (l *lab) compete(s *stage, lanes []*lane, review payload.Review, rate float64) (all [][]round, remark string, err error) {
	if rate == 0 {
		all, err = l.alternate(s, lanes, review, busyCallers)
		return all, failures(all), err
	}
	all = make([][]round, len(lanes))
	err = l.apart(s, func() error {
		peak := math.Inf(1)
		for _, w := range lanes {
			if err := w.warmUp(&review, pacers, l.span); err != nil {
				return err
			}
			t := w.flood(&review, pacers, l.span)
			peak = min(peak, float64(t.allowed)/t.took.Seconds())
		}
		var less string
		rate, less = carried(rate, peak)
		err := l.rotate(all, lanes, &review, 0, rate)
		remark = cmp.Or(failures(all), late(all, rate), less)
		return err
	})
	return all, remark, err
}

// headroom is how much more than a rate a machine has to carry, so that what is
// measured there is a process that waits.
const headroom = 1.25

// carried returns the wanted rate if a peak leaves room above it, or else the
// highest round one below half of the peak, and says so.
func carried(wanted, peak float64) (rate float64, remark string) {
	if peak >= headroom*wanted {
		return wanted, ""
	}
	step := math.Pow(10, math.Floor(math.Log10(max(peak/2, 10)))) / 2
	rate = max(step, math.Floor(peak/2/step)*step)
	return rate, fmt.Sprintf("at %s, as the most that this machine carries is %s", perSecond(rate), perSecond(peak))
}

// late says so if a rate was asked for that was not carried after all.
func late(all [][]round, wanted float64) string {
	const most = 0.95
	for _, list := range all {
		if got := spreadOf(values(list, rate)).Median; got < most*wanted {
			return fmt.Sprintf("only %s of %s were carried", perSecond(got), perSecond(wanted))
		}
	}
	return ""
}

// perSecond writes a rate.
func perSecond(rate float64) string { return fmt.Sprintf("%.0f /s", rate) }
