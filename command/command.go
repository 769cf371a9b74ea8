// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of the dispatcher: a binary is its main
// function and what is compiled into it.
package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

// Exit codes.
const (
	exitOK      = 0
	exitProblem = 1
	exitUsage   = 2
	exitSilent  = 2 // status: nobody answers
)

// Options are what a binary is that its command line and its configuration do not
// say.
type Options struct {
	Version string // what it says it is
	// Plugins are compiled in besides those that are shipped. A name that is shipped is
	// taken.
	Plugins []plugin.Plugin

	compiledIn plugin.Set // all of them
}

// Run runs a command line and returns the exit code: 0 all is well, 1 there is a
// problem, 2 the command line is at fault or, of status, nobody answers.
func Run(o Options, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := New(o)
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

// New returns the whole command. Plugins that cannot be compiled in are an error of every
// subcommand.
func New(o Options) *cobra.Command {
	var mistake error
	o.compiledIn, mistake = plugin.NewSet(kubernetes.Plugins(o.Plugins...)...)
	root := &cobra.Command{
		Use:               "dispatcher",
		Short:             "One admission webhook in front of all your admission webhooks, for many clusters",
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return mistake },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{cmd.CommandPath(), errors.New("name a command")}
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServe(o), newStatus(), newValidate(o), newImport(), newLint(), newCells(), newExplain(o), newRegistration(o), newDemo(o), newLoadtest(), newVersion(o))
	asUsage(root)
	return root
}

// asUsage makes everything that cobra finds wrong with a command line a usage
// error, of the command and those below it.
func asUsage(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		asUsage(below)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd.CommandPath(), err} })
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
			return &usageError{cmd.CommandPath(), err}
		}
		if check == nil {
			return nil
		}
		if err := check(cmd, args); err != nil {
			return &usageError{cmd.CommandPath(), err}
		}
		return nil
	}
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
