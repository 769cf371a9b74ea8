// SPDX-License-Identifier: Apache-2.0

// The dispatcher-kube is what needs the API of the cluster that the dispatcher runs in, so
// that the dispatcher itself needs no credential of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: dispatcher-kube sync --config FILE --directory DIRECTORY --namespace NAMESPACE
       dispatcher-kube controller --config FILE --directory DIRECTORY --namespace NAMESPACE

sync keeps a directory equal to the objects of group dispatcher.dev in a Kubernetes API.
The dispatcher reads DIRECTORY/current.
controller writes the conditions of these objects, and looks after the registrations of
clusters. One is enough.
"dispatcher-kube COMMAND --help" lists the flags.
`

// commands are what there is to run, by their names.
func commands() map[string]func(context.Context, []string, io.Writer) error {
	return map[string]func(context.Context, []string, io.Writer) error{"sync": runSync, "controller": runController}
}

// errUsage ends the command with 2.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	command := func(context.Context, []string, io.Writer) error {
		_, _ = fmt.Fprint(stderr, usage)
		return errUsage
	}
	if len(args) > 0 && commands()[args[0]] != nil {
		command, args = commands()[args[0]], args[1:]
	}
	err := command(ctx, args, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
	return 1
}
