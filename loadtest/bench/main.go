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

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var jsonFile, markdownFile, only string
	var short bool
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&jsonFile, "json", "", "also write the results to this file, as JSON")
	flags.StringVar(&markdownFile, "markdown", "", "also write the results to this file, as a page")
	flags.StringVar(&only, "figure", "", "measure these figures only, such as P1,P2")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each measurement")
	flags.DurationVar(&o.span, "span", 1500*time.Millisecond, "time of each measurement in a round")
	flags.BoolVar(&short, "short", false, "two rounds of 100ms: whether it works, not what comes out")
	flags.StringVar(&o.note, "note", "", "a remark about the machine")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if short {
		o.rounds, o.span = 2, 100*time.Millisecond
	}
	wanted, err := choose(figures(), only)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o, progress)
	if err != nil {
		return err
	}
	defer l.close()
	r := report{Machine: describe(ctx, o)}
	for i := range wanted {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Results = append(r.Results, wanted[i].take(l))
	}
	return r.write(out, jsonFile, markdownFile)
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
