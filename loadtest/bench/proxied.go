// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"time"

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

// proxied is the CPU of an admission with so many webhooks, against nginx, which
// asks one.
type proxied struct {
	review   func() payload.Review
	webhooks int
	further  bool // for each webhook beyond the first
}

func (p proxied) measure(l *lab) (reading, error) {
	s, err := l.stage()
	if err != nil {
		return reading{}, err
	}
	if s.nginx == nil {
		return reading{}, errNoNginx
	}
	rounds, err := l.againstNginx(s, p.review(), p.webhooks)
	if err != nil {
		return reading{}, err
	}
	nginx, ours := values(rounds[0], cpu), values(rounds[1], cpu)
	if p.further {
		for i, r := range rounds[2] {
			ours[i] = (ours[i] - r.perAdmission) / float64(p.webhooks-1)
		}
	}
	got := against(ours, nginx, "us")
	got.remark = failures(rounds)
	return got, nil
}

// againstNginx measures nginx, the dispatcher with so many webhooks, and with one.
func (l *lab) againstNginx(s *stage, review payload.Review, webhooks int) ([][]round, error) {
	return remember(l, fmt.Sprintf("CPU of %s, %d webhooks, against nginx", review.Name, webhooks), func() ([][]round, error) {
		contestants := []contestant{{s.nginx, 1}, {s.dispatcher, webhooks}}
		if webhooks > 1 {
			contestants = append(contestants, contestant{s.dispatcher, 1})
		}
		return l.race(s, review, contestants...)
	})
}

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

// plainWebhooks is how many webhooks the plain dispatcher asks.
const plainWebhooks = 3

// crowds are the numbers of callers at once.
var crowds = []int{8, 64, 256}

// throughput is how many admissions a second there are with three webhooks,
// against the plain dispatcher.
type throughput struct{ callers int }

func (t throughput) measure(l *lab) (reading, error) {
	rounds, err := l.againstPlain(t.callers)
	if err != nil {
		return reading{}, err
	}
	ours, plain := values(rounds[0], rate), values(rounds[1], rate)
	remark := cmp.Or(failures(rounds), idle(rounds[0]))
	return reading{ours: ours, peer: plain, unit: "/s", score: quotients(ours, plain), remark: remark}, nil
}

// idle says so if it was not the target that bounded its throughput: callers and
// webhooks share a core, and have more to do than a dispatcher that is fast.
func idle(rounds []round) string {
	const full = 0.9
	if share := spreadOf(values(rounds, busy)).Median; share < full {
		return fmt.Sprintf("a lower bound, as the dispatcher was running %.0f %% of the time only", 100*share)
	}
	return ""
}

func (l *lab) againstPlain(callers int) ([][]round, error) {
	s, err := l.stage()
	if err != nil {
		return nil, err
	}
	return remember(l, fmt.Sprintf("throughput with %d callers, against the plain dispatcher", callers), func() ([][]round, error) {
		ours, err := l.lane(s, s.dispatcher, caller(plainWebhooks))
		if err != nil {
			return nil, err
		}
		plain, err := l.lane(s, s.plain, caller(plainWebhooks))
		if err != nil {
			return nil, err
		}
		return l.contest(s, []*lane{ours, plain}, payload.PodCreate(), callers)
	})
}

// collapse is the throughput with the most callers, as a share of the peak.
type collapse struct{}

func (collapse) measure(l *lab) (reading, error) {
	shares := make([][]float64, 2)
	for i := range shares {
		peak := 0.0
		var last []float64
		for _, callers := range crowds {
			rounds, err := l.againstPlain(callers)
			if err != nil {
				return reading{}, err
			}
			last = values(rounds[i], rate)
			peak = max(peak, spreadOf(last).Median)
		}
		for _, v := range last {
			shares[i] = append(shares[i], 100*v/peak)
		}
	}
	return reading{ours: shares[0], peer: shares[1], unit: "%", score: shares[0]}, nil
}

// milliseconds of a duration.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
