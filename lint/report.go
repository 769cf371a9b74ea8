// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Reported is a Finding in words, as commands print it.
type Reported struct {
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

// Report returns what Check finds; never nil.
func Report(in *Input) []Reported {
	list := []Reported{}
	for _, f := range Check(*in) {
		out := Reported{Rule: f.Rule.ID, Level: string(f.Level), Value: f.Value, Text: f.Text, Stops: f.Stops, Remedy: f.Rule.Remedy, Link: f.Rule.Link()}
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

// HasError reports whether one of the list is an Error.
func HasError(list []Reported) bool {
	for i := range list {
		if list[i].Level == string(Error) {
			return true
		}
	}
	return false
}

// WriteJSON writes the list as JSON.
func WriteJSON(w io.Writer, list []Reported) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(list)
}

// WriteText writes the list as a table, with the remedy of each rule once.
func WriteText(w io.Writer, list []Reported, configurations int) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(list) > 0 {
		_, _ = fmt.Fprintln(tw, "RULE\tLEVEL\tOBJECT\tFIELD\tREASON")
	}
	remedies := map[string]Reported{}
	for _, f := range list {
		text := f.Text
		if f.Value != "" {
			text = fmt.Sprintf("%q: %s", f.Value, f.Text)
		}
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", f.Rule, f.Level, cmp.Or(f.Object, "-"), cmp.Or(f.Field, "-"), text)
		remedies[f.Rule] = f
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, rule := range Rules() {
		if f, ok := remedies[rule.ID]; ok {
			_, _ = fmt.Fprintf(w, "\n%s: %s\n%s\n", rule.ID, f.Remedy, f.Link)
		}
	}
	_, err := fmt.Fprintf(w, "%s in %s\n", plural(len(list), "finding"), plural(configurations, "configuration"))
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
