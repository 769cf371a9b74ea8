// SPDX-License-Identifier: Apache-2.0

// Command projects makes the table of what becomes of the files that public projects ship:
//
//	go run ./internal/projects FILE...
//
// Each FILE is what one project ships, released or rendered ("helm template"), and is
// called after it. Nothing of a project is kept here: who wants the table brings the files.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "projects:", err)
		os.Exit(1)
	}
}

// run prints a row for each file, and then the problems. The columns: the problems of the whole file and how many
// objects of it are skipped; its webhooks, and those with a caBundle; what is wrong where a
// Cluster lists no namespaces; how many webhooks a request that each asks for reaches, in a
// namespace with the labels that it asks for.
func run(out io.Writer, files []string) error {
	if len(files) == 0 {
		return errors.New("name the FILEs of projects")
	}
	tw := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	_, _ = fmt.Fprintln(tw, "| project\t| file\t| wh/CA\t| alone\t| called\t|")
	_, _ = fmt.Fprintln(tw, "|---\t|---\t|---\t|---\t|---\t|")
	var sum row
	var problems []string
	for _, file := range files {
		r, err := rowOf(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.print(tw, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		sum.add(r)
		problems = append(problems, r.said...)
	}
	sum.print(tw, "sum")
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, problem := range problems {
		if _, err := fmt.Fprintln(out, problem); err != nil {
			return err
		}
	}
	return nil
}

// row is what is said of one file.
type row struct {
	problems, skipped          int
	webhooks, bundled, reached int
	alone                      string // the first problem; empty: none
	refused                    int    // files that are refused without namespaces
	said                       []string
}

func (r *row) add(other row) {
	r.problems += other.problems
	r.skipped += other.skipped
	r.webhooks += other.webhooks
	r.bundled += other.bundled
	r.reached += other.reached
	if other.alone != "" {
		r.refused++
		r.alone = fmt.Sprintf("refused: %d files", r.refused)
	}
}

func (r *row) print(out io.Writer, name string) {
	file, alone := fmt.Sprintf("loads, %d skipped", r.skipped), "loads"
	if r.problems > 0 {
		file = fmt.Sprintf("%d problems", r.problems)
	}
	if r.alone != "" {
		alone = r.alone
	}
	_, _ = fmt.Fprintf(out, "| %s\t| %s\t| %d/%d\t| %s\t| %d/%d\t|\n", name, file, r.webhooks, r.bundled, alone, r.reached, r.webhooks)
}
