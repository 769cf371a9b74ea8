// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// profile is where the CPU time of an admission goes.
type profile struct {
	Webhooks     int     `json:"webhooks"`
	Milliseconds int     `json:"milliseconds"` // of CPU
	PerAdmission float64 `json:"perAdmission"` // microseconds of CPU
	Shares       []share `json:"shares"`
	Unruled      []share `json:"unruled,omitempty"` // innermost functions of the rest
}

// profile returns the profile of the dispatcher that the figures are measured with,
// and leaves it in the file.
func (l *lab) profile(file string, webhooks int) (profile, error) {
	t, used, err := l.profileInto(file, webhooks)
	if err != nil {
		return profile{}, err
	}
	cmd := exec.CommandContext(l.ctx, "go", "tool", "pprof", "-traces", file)
	out, err := cmd.Output()
	if err != nil {
		return profile{}, fmt.Errorf("go tool pprof -traces: %w", err)
	}
	stacks, err := parseStacks(string(out))
	if err != nil {
		return profile{}, err
	}
	p := profile{Webhooks: webhooks, Milliseconds: int(used.Milliseconds()), PerAdmission: float64(used.Microseconds()) / float64(max(t.allowed, 1))}
	p.Shares, p.Unruled = divide(stacks)
	return p, nil
}

// profileInto writes a CPU profile of the dispatcher while it is busy with
// admissions of so many webhooks. It returns what was admitted meanwhile, and the
// CPU that this took.
func (l *lab) profileInto(file string, webhooks int) (t tally, used time.Duration, err error) {
	s, err := l.stage()
	if err != nil {
		return t, 0, err
	}
	l.say("profile with %d webhooks", webhooks)
	w, err := l.lane(s, s.dispatcher, caller(webhooks))
	if err != nil {
		return t, 0, err
	}
	err = l.apart(s, func() error {
		t, used, err = l.record(w, file)
		return err
	})
	return t, used, err
}

// record floods a dispatcher for as long as its profile takes.
func (l *lab) record(w *lane, file string) (t tally, used time.Duration, err error) {
	review := payload.PodCreate()
	if err := w.warmUp(&review, busyCallers, l.span); err != nil {
		return t, 0, err
	}
	before, err := w.cpu()
	if err != nil {
		return t, 0, err
	}
	seconds := math.Ceil(8 * l.span.Seconds())
	flooded := make(chan tally, 1)
	go func() {
		flooded <- w.flood(&review, busyCallers, time.Duration(seconds)*time.Second)
	}()
	data, err := w.tell(l, fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", seconds))
	t = <-flooded
	if err != nil {
		return t, 0, err
	}
	after, err := w.cpu()
	if err != nil {
		return t, 0, err
	}
	return t, after - before, os.WriteFile(file, data, 0o600)
}

// of returns what a component costs, such as "12.1 us, 34 %".
func (p *profile) of(c component) string {
	for _, s := range p.Shares {
		if s.Name == string(c) {
			return fmt.Sprintf("%s us, %.1f %%", number(p.PerAdmission*s.Percent/100), s.Percent)
		}
	}
	return ""
}

// shownFunctions of the rest are as many as tell something.
const shownFunctions = 10

func (p *profile) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nCPU with %d webhooks, %.1f s in all\t%s us\n", p.Webhooks, float64(p.Milliseconds)/1000, number(p.PerAdmission))
	for _, c := range components() {
		fmt.Fprintf(w, "%s\t%s\n", c, p.of(c))
	}
	for _, s := range p.Unruled[:min(len(p.Unruled), shownFunctions)] {
		fmt.Fprintf(w, "    %s\t%.1f %%\n", s.Name, s.Percent)
	}
}
