// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/lint"
)

func newLint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find webhook configurations that can take a cluster down",
		Long: `Find webhook configurations that can take a cluster down: those that a cluster has
registered with its API server, and not those that the dispatcher calls, of which
validate warns by the same rules. A FILE has manifests in YAML or JSON, as kubectl
prints them; - is standard input. Services, EndpointSlices, Namespaces and
APIServices among them let more rules see more:

  kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,namespaces -o json | dispatcher lint -
  kubectl get services,endpointslices -A -o json >> more.json

Nothing is contacted. The exit code is 1 if there is a finding of level error.`,
		Args: cobra.MinimumNArgs(1),
	}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var manifests lint.Reader
		for _, name := range args {
			data, err := readFile(cmd.InOrStdin(), name)
			if err == nil {
				err = manifests.Read(name, data)
			}
			if err != nil {
				return err
			}
		}
		in := manifests.Input()
		in.Now = time.Now()
		found := lint.Report(&in)
		var err error
		if *format == asJSON {
			err = lint.WriteJSON(cmd.OutOrStdout(), found)
		} else {
			err = lint.WriteText(cmd.OutOrStdout(), found, len(in.Configurations))
		}
		if err == nil && lint.HasError(found) {
			err = errSaid
		}
		return err
	}
	return cmd
}
