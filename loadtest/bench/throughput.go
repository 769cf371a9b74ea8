// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

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
		return l.alternate(s, []*lane{ours, plain}, payload.PodCreate(), callers)
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
