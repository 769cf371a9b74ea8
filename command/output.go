// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

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

func printJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
