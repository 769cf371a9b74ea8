// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine says where and of what a report was made.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Nginx  string `json:"nginx"`
	Commit string `json:"commit"`
	Date   string `json:"date"`
	Rounds int    `json:"rounds"`
	Note   string `json:"note,omitempty"`
}

func describe(ctx context.Context, o options) machine {
	return machine{
		CPU:    model(read("/proc/cpuinfo")),
		Cores:  runtime.NumCPU(),
		Kernel: strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		Go:     runtime.Version(),
		Nginx:  nginxVersion(ctx),
		Commit: output(ctx, "git", "describe", "--always", "--dirty"),
		Date:   time.Now().UTC().Format(time.DateOnly),
		Rounds: o.rounds,
		Note:   o.note,
	}
}

// lines are what the page says of the machine, each with its name.
func (m *machine) lines() [][]string {
	return [][]string{
		{"machine", strconv.Itoa(m.Cores) + " cores of " + m.CPU},
		{"kernel", "Linux " + m.Kernel},
		{"Go", m.Go},
		{"nginx", m.Nginx},
		{"commit", m.Commit},
		{"date", m.Date},
		{"rounds", strconv.Itoa(m.Rounds)},
		{"remark", m.Note},
	}
}

// model is the first processor's name in /proc/cpuinfo.
func model(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown processor"
}

// read returns a file's contents, or nothing.
func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}

// output returns what a command prints, or nothing.
func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
