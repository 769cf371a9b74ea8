// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
)

// share is what a part has of a profile.
type share struct {
	Name    string  `json:"name"`
	Percent float64 `json:"percent"`
}

// stack is how often functions were found running: the innermost first.
type stack struct {
	took   time.Duration
	frames []string
}

// parseStacks reads what go tool pprof -traces prints of a CPU profile: a line of
// dashes, then the time and the innermost function in one line, and the others
// below it.
func parseStacks(text string) ([]stack, error) {
	var stacks []stack
	begins := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "-----------+"):
			begins = true
		case len(fields) == 0:
		case begins && len(fields) > 1:
			took, err := time.ParseDuration(fields[0])
			if err != nil {
				continue // a label
			}
			stacks, begins = append(stacks, stack{took, []string{fields[1]}}), false
		case len(stacks) > 0 && !begins:
			last := &stacks[len(stacks)-1]
			last.frames = append(last.frames, fields[0])
		}
	}
	if len(stacks) == 0 {
		return nil, errors.New("the profile is empty")
	}
	return stacks, nil
}

// part is some of what a process does, by prefixes of functions.
type part struct {
	name     string
	prefixes []string
}

const ours = "github.com/admission-dispatcher/dispatcher/"

// parts are what a profile is divided into. A sample belongs to the part of the
// innermost function that has one; what copies or looks up on behalf of others,
// such as runtime.memmove, has none.
func parts() []part {
	return []part{
		{"system calls: network, epoll, futex", []string{"internal/runtime/syscall", "syscall.", "runtime.futex", "runtime.epoll", "runtime.write1", "runtime.tgkill", "runtime.madvise"}},
		{"allocation and garbage collection", []string{"runtime.mallocgc", "runtime.newobject", "runtime.growslice", "runtime.makeslice", "runtime.gc", "runtime.bgs", "runtime.scan", "runtime.sweep", "runtime.greyobject", "runtime.wbBuf", "runtime.(*gc", "runtime.(*mcache)", "runtime.(*mcentral)", "runtime.(*mheap)", "runtime.(*mspan)", "runtime.(*sweep", "runtime.(*scav"}},
		{"scheduler: goroutines, channels, timers", []string{"runtime.schedule", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.gopark", "runtime.goready", "runtime.ready", "runtime.selectgo", "runtime.chan", "runtime.send", "runtime.recv", "runtime.newproc", "runtime.newstack", "runtime.morestack", "runtime.mstart", "runtime.sysmon", "runtime.lock", "runtime.unlock", "runtime.netpoll", "runtime.(*timer", "runtime.sem", "runtime.goschedImpl", "runtime.execute", "runtime.wakep", "runtime.startm", "runtime.stopm", "runtime.notewakeup", "runtime.gogo", "runtime.exitsyscall", "runtime.entersyscall", "runtime.reentersyscall", "runtime.casgstatus", "runtime.runq"}},
		{"TLS", []string{"crypto/", "internal/byteorder", "vendor/golang.org/x/crypto", "hash/"}},
		{"CEL", []string{"github.com/google/cel-go", ours + "internal/celenv", "k8s.io/apiserver/"}},
		{"telemetry", []string{"go.opentelemetry.io/", "github.com/prometheus/", ours + "internal/metrics", ours + "internal/tracing", ours + "internal/logging", ours + "internal/decisionlog", ours + "internal/otlp", "log/slog"}},
		{"reading and writing reviews and answers", []string{ours + "codec"}},
		{"HTTP and connections", []string{"github.com/valyala/", "bufio.", "net.", "net/", "internal/poll."}},
		{"matching, calling and deciding", []string{ours, "github.com/HdrHistogram"}},
	}
}

const rest = "other"

// partOf returns the part that a stack belongs to.
func (s *stack) partOf(all []part) string {
	for _, frame := range s.frames {
		for _, p := range all {
			if slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(frame, prefix) }) {
				return p.name
			}
		}
	}
	return rest
}

// packageOf returns the package of a function.
func packageOf(function string) string {
	name, _, _ := strings.Cut(function, "[") // type parameters have paths of their own
	slash := strings.LastIndexByte(name, '/') + 1
	last, _, dot := strings.Cut(name[slash:], ".")
	if !dot {
		return "assembler" // such as memeqbody
	}
	return name[:slash] + last
}

// newProfile divides the stacks by part, and by the package of the innermost
// function.
func newProfile(load string, stacks []stack) *profile {
	all := parts()
	var total time.Duration
	byPart, byPackage := map[string]time.Duration{}, map[string]time.Duration{}
	for i := range stacks {
		s := &stacks[i]
		total += s.took
		byPart[s.partOf(all)] += s.took
		byPackage[packageOf(s.frames[0])] += s.took
	}
	return &profile{Load: load, Milliseconds: int(total.Milliseconds()), Shares: sharesOf(byPart, total), Packages: sharesOf(byPackage, total)}
}

// sharesOf returns the largest first.
func sharesOf(of map[string]time.Duration, total time.Duration) []share {
	var list []share
	for name, took := range of {
		list = append(list, share{name, 100 * float64(took) / float64(total)})
	}
	slices.SortFunc(list, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), strings.Compare(a.Name, b.Name))
	})
	return list
}
