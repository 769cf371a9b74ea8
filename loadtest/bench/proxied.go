// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// proxied is the CPU of an admission against that of a peer which passes it on to
// one webhook, in the same contest.
type proxied struct {
	in   contest
	ours string // the entrant that is compared
	peer string
	// further is the entrant whose CPU is taken off, if there is one: what is left is
	// that of the webhooks beyond it, of which there are beyond.
	further string
	beyond  int
	rate    float64 // 0: at saturation
}

func (p proxied) measure(l *lab) (reading, error) {
	got, err := p.in.hold(l, p.rate)
	if err != nil {
		return reading{}, err
	}
	peer, found := got.rounds[p.peer]
	if !found {
		return reading{}, errNoNginx // the others always run
	}
	rounds, found := got.rounds[p.ours]
	if !found {
		return reading{}, fmt.Errorf("%s is not in the contest", p.ours)
	}
	ours := values(rounds, cpu)
	for i, r := range got.rounds[p.further] {
		ours[i] = (ours[i] - r.perAdmission) / float64(p.beyond)
	}
	compared := against(ours, values(peer, cpu), "us")
	compared.remark = got.remark
	return compared, nil
}

// at is the figure at a rate.
func (p proxied) at(rate float64) proxied {
	p.rate = rate
	return p
}
