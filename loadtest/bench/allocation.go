// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// allocation is what a dispatcher allocates per admission: all of its process, TLS
// on both sides and the collector's cleared pools included, and nothing of its
// caller and its webhooks. It is what /metrics says before and after a flood.
type allocation struct {
	cluster string
	metric  string
	per     float64
	unit    string
	inside  string // the same of BenchmarkFiveWebhooks, for the remark; empty: none
}

func (a allocation) measure(l *lab) (reading, error) {
	s, err := l.stage()
	if err != nil {
		return reading{}, err
	}
	list, err := remember(l, a.metric+" per admission of "+a.cluster, func() ([]float64, error) { return l.allocations(s, a) })
	if err != nil {
		return reading{}, err
	}
	got := absolute(list, a.unit)
	if a.inside == "" {
		return got, nil
	}
	if in, err := admission(a.inside, a.per, a.unit).measure(l); err == nil {
		got.remark = fmt.Sprintf("%s with caller and webhooks in the same process, and their TLS", withUnit(spreadOf(in.ours), a.unit))
	}
	return got, nil
}

// allocations returns one value for each round.
func (l *lab) allocations(s *stage, a allocation) ([]float64, error) {
	w, err := l.lane(s, s.dispatcher, a.cluster)
	if err != nil {
		return nil, err
	}
	review := payload.PodCreate()
	var list []float64
	err = l.apart(s, func() error {
		if err := w.warmUp(&review, busyCallers, l.span); err != nil {
			return err
		}
		for range l.rounds {
			each, err := l.allocated(w, &review, a.metric)
			if err != nil {
				return err
			}
			list = append(list, each/a.per)
		}
		return nil
	})
	return list, err
}

// allocated returns by how much a metric grows per admission. What it takes to ask
// for it is known from asking twice.
func (l *lab) allocated(w *lane, review *payload.Review, name string) (float64, error) {
	var at [3]float64
	var t tally
	for i := range at {
		if i == 2 {
			t = w.flood(review, busyCallers, l.span)
		}
		text, err := w.tell(l, "/metrics")
		if err != nil {
			return 0, err
		}
		if at[i], err = metric(text, name); err != nil {
			return 0, err
		}
	}
	if t.failed > 0 || t.allowed == 0 {
		return 0, fmt.Errorf("%d admissions allowed, %d failed: %w", t.allowed, t.failed, t.failure)
	}
	return (at[2] - at[1] - (at[1] - at[0])) / float64(t.allowed), nil
}
