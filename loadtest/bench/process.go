// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// program is a program of the stage that runs.
type program struct{ *process.Process }

// start starts a program that may use the given processors only, with variables
// beside those of this process.
func (l *lab) start(on cores, environment []string, path string, args ...string) (program, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = l.dir, append(os.Environ(), environment...)
	p, err := process.StartBy(cmd, nil, func() error { return startOn(cmd, on) })
	if err != nil {
		return program{}, err
	}
	l.atEnd(p.Kill)
	return program{p}, nil
}

// cpu is what all threads of the process have used, user and system: the first
// number of each schedstat, in nanoseconds.
func (p program) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.ID()))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("no schedstat of process %d: %w", p.ID(), err)
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		var running time.Duration
		if _, err := fmt.Fscan(bytes.NewReader(text), &running); err != nil {
			return 0, fmt.Errorf("%s: %w", thread, err)
		}
		sum += running
	}
	return sum, nil
}

// resident is the memory of the process, in MiB.
func (p program) resident() (float64, error) {
	_, rest, found := strings.Cut(read(fmt.Sprintf("/proc/%d/status", p.ID())), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); !found || err != nil {
		return 0, fmt.Errorf("no VmRSS of process %d: %w", p.ID(), err)
	}
	return kib / 1024, nil
}
