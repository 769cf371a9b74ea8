// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// latency is how long an admission takes at half the rate that the dispatcher can
// do at most, with one webhook.
type latency struct {
	quantile float64
	added    bool // what it adds to calling the webhook directly, instead of the whole against nginx
}

func (m latency) measure(l *lab) (reading, error) {
	s, err := l.stage()
	if err != nil {
		return reading{}, err
	}
	rounds, err := l.latencies(s)
	if err != nil {
		return reading{}, err
	}
	at := func(of int) []float64 {
		var list []float64
		for _, r := range rounds {
			list = append(list, milliseconds(quantile(r[of], m.quantile)))
		}
		return list
	}
	ours, direct := at(0), at(1)
	if m.added {
		added := make([]float64, len(ours))
		for i := range ours {
			added[i] = ours[i] - direct[i]
		}
		return reading{ours: ours, peer: direct, unit: "ms", score: added}, nil
	}
	if s.nginx == nil {
		return reading{}, errNoNginx
	}
	return against(ours, at(2), "ms"), nil
}

// latencies paces the dispatcher, the webhook itself and nginx, if there is one.
func (l *lab) latencies(s *stage) ([][][]time.Duration, error) {
	return remember(l, "latency at half the peak", func() ([][][]time.Duration, error) {
		var lanes []*lane
		for _, t := range []*target{s.dispatcher, {name: "webhook", address: s.webhooks, path: "/%s"}, s.nginx} {
			if t == nil {
				continue
			}
			w, err := l.lane(s, t, caller(1))
			if err != nil {
				return nil, err
			}
			lanes = append(lanes, w)
		}
		var rounds [][][]time.Duration
		err := l.apart(s, func() (err error) {
			rounds, err = l.paceAll(lanes)
			return err
		})
		return rounds, err
	})
}

// paceAll finds the peak of the first lane, and has all carry half of it.
func (l *lab) paceAll(lanes []*lane) ([][][]time.Duration, error) {
	review := payload.PodCreate()
	for _, w := range lanes {
		if err := w.warmUp(&review, pacers, l.span); err != nil {
			return nil, err
		}
	}
	peak := lanes[0].flood(&review, pacers, l.span)
	half := float64(peak.allowed) / peak.took.Seconds() / 2
	l.say("half the peak is %.0f admissions a second", half)
	rounds := make([][][]time.Duration, l.rounds)
	for i := range rounds {
		for _, w := range lanes {
			took, err := w.pace(&review, half, l.span)
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], took)
		}
	}
	return rounds, nil
}
