// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
)

// guidedFigures decide whether a profile is worth checking in: from 3 % on.
func guidedFigures() []figure {
	const plain = "built without a profile"
	return []figure{
		{"PGO", "CPU per admission, 1 webhook, 6 KB", plain, atMost(0.97, times), guided{1}},
		{"PGO", "CPU per admission, 5 webhooks, 6 KB", plain, atMost(0.97, times), guided{5}},
	}
}

// guided is the CPU of a dispatcher that was built with a profile of its own under
// the load of P2, against one that was built without.
type guided struct{ webhooks int }

func (g guided) measure(l *lab) (reading, error) {
	s, err := l.stage()
	if err != nil {
		return reading{}, err
	}
	with, err := l.guidedDispatcher(s)
	if err != nil {
		return reading{}, err
	}
	rounds, err := l.compare(s, g.webhooks, with, s.dispatcher)
	if err != nil {
		return reading{}, err
	}
	got := against(values(rounds[0], cpu), values(rounds[1], cpu), "us")
	got.remark = failures(rounds)
	return got, nil
}

// guidedDispatcher profiles the dispatcher, builds it again and starts that.
func (l *lab) guidedDispatcher(s *stage) (*target, error) {
	return remember(l, "build a dispatcher with its profile", func() (*target, error) {
		file, binary := l.path("guide.pprof"), l.path("guided")
		if _, _, err := l.profileInto(file, mostWebhooks); err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(l.ctx, "go", "build", "-trimpath", "-pgo="+file, "-o", binary, "./cmd/dispatcher")
		cmd.Dir = l.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build -pgo: %w: %s", err, lastLine(out))
		}
		return l.startServe(serving{on: s.one, config: "dispatcher.yaml", environment: s.observed(), binary: binary})
	})
}
