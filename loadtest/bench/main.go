// SPDX-License-Identifier: Apache-2.0

// Command bench measures the figures that the project promises and prints them as
// one table. It never fails because of a figure. "make bench" runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// webhooksMode is the first argument of the process that serves the webhooks.
const webhooksMode = "webhooks"

func main() {
	if len(os.Args) == 4 && os.Args[1] == webhooksMode {
		exitOn(serveWebhooks(os.Args[2], os.Args[3], os.Stdout))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exitOn(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// request is what the command line asks for.
type request struct {
	options
	figures  []figure
	profile  string // file, if nothing but a profile is wanted
	webhooks int    // of that profile
	from     string // file of an earlier run; empty: measure
	json     string // file; empty: none
	update   int    // which run of the page this one is; 0: none
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	ask, err := parseArguments(args)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, ask.options, progress)
	if err != nil {
		return err
	}
	defer l.close()
	r := report{}
	if ask.from != "" {
		r, err = readReport(ask.from)
	} else {
		r.Machine = describe(ctx, ask.options)
		err = r.measure(l, &ask)
	}
	if err != nil {
		return err
	}
	if err := r.writeText(out); err != nil {
		return err
	}
	if ask.json != "" {
		if err := writeFile(ask.json, r.writeJSON); err != nil {
			return err
		}
	}
	if ask.update == 0 {
		return nil
	}
	if len(r.Results) != len(figures()) {
		return fmt.Errorf("of %d figures the run has %d: the page keeps whole runs", len(figures()), len(r.Results))
	}
	return r.keep(l.root, ask.update)
}

func parseArguments(args []string) (request, error) {
	var ask request
	var only string
	var short, guided bool
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&ask.json, "json", "", "also write the results to this file, as JSON")
	flags.StringVar(&ask.from, "from", "", "measure nothing, but take the results from this file, as -json has written it")
	flags.IntVar(&ask.update, "update", 0, "keep the results as run 1 or 2 of "+pageFile+", and write that")
	flags.StringVar(&only, "figure", "", "measure these figures only, such as P1,P2")
	flags.StringVar(&ask.profile, "profile", "", "measure no figures, but write a CPU profile of the dispatcher under load to this file")
	flags.IntVar(&ask.webhooks, "webhooks", mostWebhooks, "with how many webhooks")
	flags.BoolVar(&guided, "pgo", false, "measure other figures: what a build gains that is guided by the profile")
	flags.IntVar(&ask.rounds, "rounds", 5, "rounds of each measurement")
	flags.DurationVar(&ask.span, "span", 1500*time.Millisecond, "time of each measurement in a round")
	flags.BoolVar(&short, "short", false, "two rounds of 100ms: whether it works, not what comes out")
	flags.StringVar(&ask.note, "note", "", "a remark about the machine")
	if err := flags.Parse(args); err != nil {
		return ask, err
	}
	if short {
		ask.rounds, ask.span = 2, 100*time.Millisecond
	}
	if ask.update != 0 && (only != "" || ask.profile != "" || guided) {
		return ask, errors.New("a run that is kept has all figures")
	}
	if ask.update < 0 || ask.update > len(kept) {
		return ask, fmt.Errorf("the page has no run %d", ask.update)
	}
	if ask.profile != "" {
		return ask, nil
	}
	all := figures()
	if guided {
		all = guidedFigures()
	}
	var err error
	ask.figures, err = choose(all, only)
	return ask, err
}

// measure takes the figures, and the profiles where one alone was asked for or where
// they explain figures.
func (r *report) measure(l *lab, ask *request) error {
	if ask.profile != "" {
		return r.explain(l, ask.profile, ask.webhooks)
	}
	explains := false
	for i := range ask.figures {
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		f := &ask.figures[i]
		r.Results = append(r.Results, f.take(l))
		explains = explains || f.id == "P1" || f.id == "P2"
	}
	if explains {
		for _, webhooks := range []int{1, mostWebhooks} {
			if err := r.explain(l, l.path("cpu.pprof"), webhooks); err != nil {
				l.say("no profile: %v", err)
			}
		}
	}
	return nil
}

// explain adds a profile, which it leaves in the file.
func (r *report) explain(l *lab, file string, webhooks int) error {
	p, err := l.profile(file, webhooks)
	if err == nil {
		r.Profiles = append(r.Profiles, p)
	}
	return err
}

// choose returns the figures with the names in a list with commas; none: all.
func choose(all []figure, names string) ([]figure, error) {
	if names == "" {
		return all, nil
	}
	var chosen []figure
	for name := range strings.SplitSeq(names, ",") {
		before := len(chosen)
		for _, f := range all {
			if strings.EqualFold(f.id, name) {
				chosen = append(chosen, f)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("there is no figure %q", name)
		}
	}
	return slices.Clip(chosen), nil
}

func writeFile(name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
