// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "dispatcher",
		Short:         "One admission webhook in front of all your admission webhooks, for many clusters",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{cmd.CommandPath(), errors.New("name a command")}
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServe(), newStatus(), newValidate(), newExplain(), newRegistration(), newDemo(), newLoadtest(), newVersion())
	for _, cmd := range append(root.Commands(), root) {
		asUsage(cmd)
	}
	return root
}

// asUsage makes everything that cobra finds wrong with a command line a usage
// error.
func asUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd.CommandPath(), err} })
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cmd.ValidateRequiredFlags(); err != nil {
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

// output is the flag -o: text or json.
type output string

const (
	asText output = "text"
	asJSON output = "json"
)

func (o *output) String() string { return string(*o) }

func (o *output) Type() string { return "format" }

func (o *output) Set(value string) error {
	if !slices.Contains([]output{asText, asJSON}, output(value)) {
		return fmt.Errorf("must be %s or %s", asText, asJSON)
	}
	*o = output(value)
	return nil
}

func outputFlag(cmd *cobra.Command) *output {
	o := asText
	cmd.Flags().VarP(&o, "output", "o", "output format: text or json")
	return &o
}

func configFlag(cmd *cobra.Command, required bool) *string {
	path := cmd.Flags().String("config", "", "the DispatcherConfiguration file")
	if required {
		_ = cmd.MarkFlagRequired("config") // fails only for a flag that does not exist
	}
	return path
}

// loadConfig reads the configuration file and prints what is wrong with it.
func loadConfig(stderr io.Writer, path string) (*config.Config, error) {
	cfg, problems := config.Load(path)
	if len(problems) > 0 {
		printProblems(stderr, "error", problems)
		return nil, errSaid
	}
	return cfg, nil
}

func printProblems(w io.Writer, kind string, problems []manifest.Problem) {
	for _, p := range problems {
		_, _ = fmt.Fprintf(w, "%s: %s\n", kind, p)
	}
}

func printJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
