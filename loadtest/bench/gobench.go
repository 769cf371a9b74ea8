// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// benchmark is a pair of Go benchmarks of one package, run in turn.
type benchmark struct {
	pkg  string // directory in the repository
	run  string // regular expression as of go test -bench
	ours string // name without "Benchmark" and the number of processors
	peer string // empty: the figure is absolute
	unit string // ns/op, allocs/op, or one of the benchmark's own
	// against is the unit of the peer. Default: unit.
	against string
	per     float64
	show    string // the unit after division by per; empty: unit as it is
	gain    bool   // the score is how many times less ours is
	// aside says what else the rounds tell. Default: nothing.
	aside func(rounds []metrics) string
}

func (b benchmark) measure(l *lab) (reading, error) {
	rounds, err := l.benchmarks(b.pkg, b.run)
	if err != nil {
		return reading{}, err
	}
	got, err := b.compare(rounds)
	if err == nil && b.aside != nil {
		got.remark = b.aside(rounds)
	}
	return got, err
}

func (b benchmark) compare(rounds []metrics) (reading, error) {
	ours := column(rounds, b.ours, b.unit, b.per)
	if len(ours) == 0 {
		return reading{}, fmt.Errorf("no Benchmark%s in ./%s", b.ours, b.pkg)
	}
	unit := cmp.Or(b.show, b.unit)
	if b.peer == "" {
		return absolute(ours, unit), nil
	}
	peer := column(rounds, b.peer, cmp.Or(b.against, b.unit), b.per)
	if len(peer) == 0 {
		return reading{}, fmt.Errorf("no Benchmark%s in ./%s", b.peer, b.pkg)
	}
	if b.gain {
		return gain(ours, peer, unit), nil
	}
	return against(ours, peer, unit), nil
}

// metrics are one round's values, by benchmark and unit.
type metrics map[string]map[string]float64

// column is one value in all rounds, divided by per if that is not 0.
func column(rounds []metrics, name, unit string, per float64) []float64 {
	var values []float64
	for _, m := range rounds {
		v, found := m[name][unit]
		if !found {
			continue
		}
		if per != 0 {
			v /= per
		}
		values = append(values, v)
	}
	return values
}

// parseBenchmarks reads what go test -bench prints.
func parseBenchmarks(text string) metrics {
	all := metrics{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		values := map[string]float64{}
		for i := 2; i < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				values[fields[i+1]] = v
			}
		}
		all[benchmarkName(fields[0])] = values
	}
	return all
}

// benchmarkName strips "Benchmark" and the number of processors, which follows the
// last dash unless it is 1.
func benchmarkName(s string) string {
	s = strings.TrimPrefix(s, "Benchmark")
	if i := strings.LastIndexByte(s, '-'); i > 0 {
		if _, err := strconv.Atoi(s[i+1:]); err == nil {
			return s[:i]
		}
	}
	return s
}

// benchmarks runs the benchmarks of a package once a round, which go test -count
// does not: that repeats each before it goes on to the next.
func (l *lab) benchmarks(pkg, run string) ([]metrics, error) {
	return remember(l, "benchmarks "+pkg+" "+run, func() ([]metrics, error) {
		binary, err := l.testBinary(pkg)
		if err != nil {
			return nil, err
		}
		var rounds []metrics
		for range l.rounds {
			cmd := exec.CommandContext(l.ctx, binary, "-test.run=^$", "-test.bench="+run, "-test.benchmem", "-test.benchtime="+(l.span/3).String())
			cmd.Dir = filepath.Join(l.root, pkg)
			out, err := cmd.CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("the benchmarks of ./%s: %w: %s", pkg, err, lastLine(out))
			}
			rounds = append(rounds, parseBenchmarks(string(out)))
		}
		return rounds, nil
	})
}

// testBinary compiles the tests of a package.
func (l *lab) testBinary(pkg string) (string, error) {
	return remember(l, "binary "+pkg, func() (string, error) {
		if _, err := os.Stat(filepath.Join(l.root, pkg)); err != nil {
			return "", fmt.Errorf("there is no ./%s", pkg)
		}
		binary := filepath.Join(l.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
		cmd := exec.CommandContext(l.ctx, "go", "test", "-c", "-o", binary, ".")
		cmd.Dir = filepath.Join(l.root, pkg) // it may be of a module of its own
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go test -c ./%s: %w: %s", pkg, err, lastLine(out))
		}
		if _, err := os.Stat(binary); err != nil {
			return "", errors.New("./" + pkg + " has no tests")
		}
		return binary, nil
	})
}

// lastLine is what a program that fails says in the end.
func lastLine(out []byte) string {
	out = bytes.TrimSpace(out)
	return string(out[bytes.LastIndexByte(out, '\n')+1:])
}
