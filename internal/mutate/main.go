// SPDX-License-Identifier: Apache-2.0

// Command mutate tests the tests of a package: it builds them once with all
// mutants of the package in them, chooses one mutant after the other, and runs the
// tests that reach it. A mutant that no test notices has survived.
//
// It prints the survivors and a score: the share of the mutants that were killed,
// of those that are not equivalent to the code. Its exit code is 1 if a mutant
// survived that survivors.txt does not give a reason for.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

func main() {
	if err := mutate(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

const module = "github.com/admission-dispatcher/dispatcher/"

func mutate(out io.Writer) error {
	only := flag.String("only", "", "try only mutants whose key matches this `expression`")
	workers := flag.Int("workers", 2, "how many mutants are tried at a time")
	file := flag.String("survivors", "internal/mutate/survivors.txt", "the `file` with the mutants that may survive, and why")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("give one package, such as ./match, not %q", flag.Args())
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	s, err := load(flag.Arg(0))
	if err != nil {
		return err
	}
	pkg := strings.TrimPrefix(s.path, module)
	known, err := readSurvivors(*file, pkg)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Fprintf(out, "%s: build with %d mutants\n", pkg, len(s.mutants()))
	if err := s.build(dir); err != nil {
		return err
	}
	if err := s.measure(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d mutants, %d tests\n", pkg, len(s.mutants()), len(s.tests))
	for _, name := range s.failing {
		fmt.Fprintf(out, "%s: %s fails without a mutant and is left out\n", pkg, name)
	}
	var some []*mutant
	for _, m := range s.mutants() {
		if wanted.MatchString(m.key()) {
			some = append(some, m)
		}
	}
	return judge(out, pkg, some, s.tryAll(out, some, *workers), known)
}

// tryAll tries mutants, some at a time, and returns the result of each.
func (s *subject) tryAll(out io.Writer, some []*mutant, workers int) []result {
	results := make([]result, len(some))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				results[i] = s.try(some[i])
			}
		})
	}
	for i := range some {
		next <- i
		if (i+1)%100 == 0 {
			fmt.Fprintf(out, "%d of %d\n", i+1, len(some))
		}
	}
	close(next)
	wg.Wait()
	return results
}

// judge prints what became of the mutants.
func judge(out io.Writer, pkg string, some []*mutant, results []result, known survivors) error {
	var dead, late, same, listed, alive int
	seen := map[string]bool{}
	for i, m := range some {
		reason, isKnown := known[m.key()]
		seen[m.key()] = true
		switch {
		case results[i] == killed:
			dead++
		case results[i] == timedOut:
			late++
			fmt.Fprintf(out, "%s %s:%d\n    %s\n", results[i], filepath.Join(pkg, m.file), m.line, pkg+"/"+m.key())
		case isKnown && strings.HasPrefix(reason, equivalent):
			same++
		case isKnown:
			listed++
		default:
			alive++
			fmt.Fprintf(out, "%s %s:%d\n    %s\n", results[i], filepath.Join(pkg, m.file), m.line, pkg+"/"+m.key())
		}
	}
	if different := len(some) - same; different > 0 {
		fmt.Fprintf(out, "%s: %d of %d mutants killed (%.1f %%), %d of them because a test did not end, %d equivalent, %d survive for a reason, %d without one\n",
			pkg, dead+late, different, 100*float64(dead+late)/float64(different), late, same, listed, alive)
	}
	if alive > 0 {
		return fmt.Errorf("%d mutants have survived without a reason", alive)
	}
	return nil
}
