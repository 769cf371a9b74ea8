// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import -f FILE",
		Short: "Make WebhookConfigurations of unmodified webhook configurations",
		Long: `Make WebhookConfigurations of the ValidatingWebhookConfigurations and
MutatingWebhookConfigurations in a file, for a registry in a Kubernetes API, and
print them. What else a person should know is printed to standard error. With any
problem nothing is printed but the problems, and the exit code is 1.`,
		Args: cobra.NoArgs,
	}
	name := cmd.Flags().StringP("filename", "f", "", "manifest, YAML or JSON; - is standard input")
	_ = cmd.MarkFlagRequired("filename") // it is there
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f := manifest.File{Name: *name}
		if f.Name == "-" {
			f.Name = "standard input"
			f.Data, f.Err = io.ReadAll(cmd.InOrStdin())
		} else {
			f.Data, f.Err = os.ReadFile(f.Name)
		}
		out := manifest.Import(f)
		for _, p := range out.Problems {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "problem:", p)
		}
		for _, n := range out.Notes {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "note:", n)
		}
		if len(out.Problems) > 0 {
			return errSaid
		}
		_, err := cmd.OutOrStdout().Write(out.Manifest)
		return err
	}
	return cmd
}
