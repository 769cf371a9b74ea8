// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/lint"
)

// lintFinding is what lint prints with -o json.
type lintFinding struct {
	Rule    string   `json:"rule"`
	Level   string   `json:"level"`
	File    string   `json:"file,omitempty"`
	Object  string   `json:"object,omitempty"`
	Webhook string   `json:"webhook,omitempty"`
	Field   string   `json:"field,omitempty"`
	Value   string   `json:"value,omitempty"`
	Text    string   `json:"text"`
	Stops   []string `json:"stops,omitempty"` // requests
	Remedy  string   `json:"remedy"`
	Link    string   `json:"link"`
}

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
		found := lintFindings(&in)
		if err := printLint(cmd.OutOrStdout(), *format, found, len(in.Configurations)); err != nil {
			return err
		}
		for _, f := range found {
			if f.Level == string(lint.Error) {
				return errSaid
			}
		}
		return nil
	}
	return cmd
}

func lintFindings(in *lint.Input) []lintFinding {
	list := []lintFinding{}
	for _, f := range lint.Check(*in) {
		out := lintFinding{Rule: f.Rule.ID, Level: string(f.Level), Value: f.Value, Text: f.Text, Stops: f.Stops, Remedy: f.Rule.Remedy, Link: f.Rule.Link()}
		if f.Configuration >= 0 {
			c := &in.Configurations[f.Configuration]
			out.File, out.Object = c.File, c.Object
			if f.Webhook >= 0 {
				out.Webhook = c.Webhooks[f.Webhook].Name
			}
		}
		if f.At != nil {
			out.Field = f.At.String()
		}
		list = append(list, out)
	}
	return list
}

func printLint(w io.Writer, format output, found []lintFinding, configurations int) error {
	if format == asJSON {
		return printJSON(w, found)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(found) > 0 {
		_, _ = fmt.Fprintln(tw, "RULE\tLEVEL\tOBJECT\tFIELD\tREASON")
	}
	remedies := map[string]lintFinding{}
	for _, f := range found {
		text := f.Text
		if f.Value != "" {
			text = fmt.Sprintf("%q: %s", f.Value, f.Text)
		}
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", f.Rule, f.Level, dash(f.Object), dash(f.Field), text)
		remedies[f.Rule] = f
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, rule := range lint.Rules() {
		if f, ok := remedies[rule.ID]; ok {
			_, _ = fmt.Fprintf(w, "\n%s: %s\n%s\n", rule.ID, f.Remedy, f.Link)
		}
	}
	_, err := fmt.Fprintf(w, "%s in %s\n", count(len(found), "finding"), count(configurations, "configuration"))
	return err
}
