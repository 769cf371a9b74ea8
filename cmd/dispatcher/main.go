// SPDX-License-Identifier: Apache-2.0

// The dispatcher is the shared admission tier of many Kubernetes clusters.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Exit codes.
const (
	exitOK      = 0
	exitProblem = 1
	exitUsage   = 2
	exitSilent  = 2 // status: nobody answers
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments. It returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var (
		usage  *usageError
		silent *silentError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSaid):
		return exitProblem
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "error: %v\nrun \"%s --help\" for usage\n", err, usage.command)
		return exitUsage
	case errors.As(err, &silent):
		_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
		return exitSilent
	}
	_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
	return exitProblem
}

// errSaid ends a command with exitProblem whose output says everything.
var errSaid = errors.New("problems were printed")

// usageError says that the command line is at fault, not what it names.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }
