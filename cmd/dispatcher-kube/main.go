// SPDX-License-Identifier: Apache-2.0

// The dispatcher-kube is what needs the API of a cluster, of the one that the dispatcher
// runs in or of one that calls it, so that the dispatcher itself needs no credential.
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

// subcommand is one of the commands.
type subcommand struct {
	name, synopsis, does string
	run                  func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func subcommands() []subcommand {
	return []subcommand{
		{"sync", "--config FILE --directory DIRECTORY --namespace NAMESPACE", `keep a directory equal to the objects of group dispatcher.dev in a Kubernetes API.
    The dispatcher reads DIRECTORY/current`, func(ctx context.Context, args []string, _, stderr io.Writer) error { return runSync(ctx, args, stderr) }},
		{"controller", "--config FILE --directory DIRECTORY --namespace NAMESPACE", `write the conditions of these objects, and look after the registrations of clusters;
    one is enough`, func(ctx context.Context, args []string, _, stderr io.Writer) error {
			return runController(ctx, args, stderr)
		}},
		{"lint", "--kubeconfig FILE [--config FILE --cluster NAME]", "find webhook configurations of a cluster that can take it down; read only", runLint},
		{"adopt", "--cluster NAME --kubeconfig FILE [--configuration NAME]", `print what to register in place of a cluster's own webhook configurations, and the
    patches for their owner; applies nothing`, runAdopt},
	}
}

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "usage:\n")
	for _, c := range subcommands() {
		_, _ = fmt.Fprintf(w, "  dispatcher-kube %s %s\n    %s.\n", c.name, c.synopsis, c.does)
	}
	_, _ = fmt.Fprint(w, "\"dispatcher-kube COMMAND --help\" lists the flags of a command.\n")
}

var (
	// errUsage ends the command with 2.
	errUsage = errors.New("usage")
	// errSaid ends it with 1, when all is said.
	errSaid = errors.New("said")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := errUsage
	known := false
	for _, c := range subcommands() {
		if len(args) > 0 && args[0] == c.name {
			known, err = true, c.run(ctx, args[1:], stdout, stderr)
		}
	}
	if !known {
		usage(stderr)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errSaid):
		return 1
	}
	_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
	return 1
}
