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

sync keeps a directory equal to the objects of group dispatcher.dev in a Kubernetes API.
The dispatcher reads DIRECTORY/current. "dispatcher-kube sync --help" lists the flags.
`

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
	err := errUsage
	if len(args) > 0 && args[0] == "sync" {
		err = runSync(ctx, args[1:], stderr)
	} else {
		_, _ = fmt.Fprint(stderr, usage)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
	return 1
}
