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

// profiledWebhooks is how many webhooks an admission has that is profiled, as in
// P2.
const profiledWebhooks = 5

// profile is where the CPU time of an admission goes.
type profile struct {
	Load         string  `json:"load"`
	Milliseconds int     `json:"milliseconds"` // of CPU
	Shares       []share `json:"shares"`
	Packages     []share `json:"packages"`
}

// profile returns the profile of the dispatcher that the figures are measured with,
// and leaves it in the file.
func (l *lab) profile(file string) (*profile, error) {
	if err := l.profileInto(file, profiledWebhooks); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(l.ctx, "go", "tool", "pprof", "-traces", file)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof -traces: %w", err)
	}
	stacks, err := parseStacks(string(out))
	if err != nil {
		return nil, err
	}
	return newProfile(fmt.Sprintf("%d webhooks, 6 KB, %d callers", profiledWebhooks, busyCallers), stacks), nil
}

// profileInto writes a CPU profile of the dispatcher while it is busy with
// admissions of so many webhooks.
func (l *lab) profileInto(file string, webhooks int) error {
	s, err := l.stage()
	if err != nil {
		return err
	}
	_, err = remember(l, fmt.Sprintf("profile with %d webhooks", webhooks), func() (struct{}, error) {
		w, err := l.lane(s, s.dispatcher, caller(webhooks))
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, l.apart(s, func() error { return l.record(w, file) })
	})
	return err
}

// record floods a dispatcher for as long as its profile takes.
func (l *lab) record(w *lane, file string) error {
	review := payload.PodCreate()
	if err := w.warmUp(&review, busyCallers, l.span); err != nil {
		return err
	}
	seconds := math.Ceil(8 * l.span.Seconds())
	flooded := make(chan tally, 1)
	go func() {
		flooded <- w.flood(&review, busyCallers, time.Duration(seconds)*time.Second)
	}()
	data, err := w.tell(l, fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", seconds))
	<-flooded
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// shownPackages are as many as tell something.
const shownPackages = 20

func (p *profile) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nCPU of %s\tshare\n", p.Load)
	for _, s := range p.Shares {
		fmt.Fprintf(w, "%s\t%.1f %%\n", s.Name, s.Percent)
	}
	fmt.Fprint(w, "\npackage of the innermost function\tshare\n")
	for _, s := range p.Packages[:min(len(p.Packages), shownPackages)] {
		fmt.Fprintf(w, "%s\t%.1f %%\n", s.Name, s.Percent)
	}
}

func (p *profile) writeMarkdown(w io.Writer) {
	fmt.Fprintf(w, whereTimeGoes, p.Load, float64(p.Milliseconds)/1000)
	for _, s := range p.Shares {
		fmt.Fprintf(w, "| %s | %.1f %% |\n", s.Name, s.Percent)
	}
}

const whereTimeGoes = `
## Where the time goes

A CPU profile of the same process in the same run: %s, %.1f s of CPU. Each sample counts
where it was, or for what: time in the runtime that others have asked for, such as copying,
is theirs. ` + "`make profile`" + ` makes one, and ` + "`go tool pprof`" + ` reads it.

| | share of CPU |
|---|---|
`
