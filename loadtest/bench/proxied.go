// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

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
