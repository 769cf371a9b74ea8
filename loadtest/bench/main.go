// SPDX-License-Identifier: Apache-2.0

// Command bench measures the figures that the project promises and prints them as
// one table. It never fails because of a figure. "make bench" runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	figures       []figure
	profile       string // file, if nothing but a profile is wanted
	json, written string // files; empty: none
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
	r := report{Machine: describe(ctx, ask.options)}
	if err := r.measure(l, &ask); err != nil {
		return err
	}
	return r.write(out, ask.json, ask.written)
}

func parseArguments(args []string) (request, error) {
	var ask request
	var only string
	var short, guided bool
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&ask.json, "json", "", "also write the results to this file, as JSON")
	flags.StringVar(&ask.written, "markdown", "", "also write the results to this file, as a page")
	flags.StringVar(&only, "figure", "", "measure these figures only, such as P1,P2")
	flags.StringVar(&ask.profile, "profile", "", "measure no figures, but write a CPU profile of the dispatcher under the load of P2 to this file")
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

// measure takes the figures, and the profile where that alone was asked for or
// explains one of them.
func (r *report) measure(l *lab, ask *request) (err error) {
	if ask.profile != "" {
		r.Profile, err = l.profile(ask.profile)
		return err
	}
	explains := false
	for i := range ask.figures {
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		f := &ask.figures[i]
		r.Results = append(r.Results, f.take(l))
		explains = explains || f.id == "P2"
	}
	if explains {
		if r.Profile, err = l.profile(l.path("cpu.pprof")); err != nil {
			l.say("no profile: %v", err)
		}
	}
	return nil
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

// write writes the table, and the files that were asked for.
func (r *report) write(out io.Writer, jsonFile, markdownFile string) error {
	if err := r.writeText(out); err != nil {
		return err
	}
	for file, write := range map[string]func(io.Writer) error{jsonFile: r.writeJSON, markdownFile: r.writeMarkdown} {
		if file == "" {
			continue
		}
		if err := writeFile(file, write); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
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
