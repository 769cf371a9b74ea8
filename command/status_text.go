// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// shownDecisions is how many of each list are printed; the JSON has all.
const shownDecisions = 10

// printStatus prints what people look for first.
func printStatus(w io.Writer, s *status.Status) error {
	readiness, snapshot := "ready", "none"
	if !s.Ready {
		readiness = "not ready"
	}
	if s.Snapshot != nil {
		snapshot = s.Snapshot.Short
	}
	_, _ = fmt.Fprintf(w, "dispatcher %s is %s, up %s, serving snapshot %s: %s for %s\n", printable(s.Version), readiness,
		s.Now.Sub(s.Started).Round(time.Second), snapshot, status.Count(s.Registered(), "webhook"), status.Count(len(s.Clusters), "cluster"))
	for i := range s.Notices {
		n := &s.Notices[i]
		for j, text := range n.Lines() {
			begin := n.Severity + ": "
			if j > 0 {
				begin = "    "
			}
			_, _ = fmt.Fprintf(w, "%s%s\n", begin, printable(text))
		}
	}
	for _, p := range s.Problems {
		_, _ = fmt.Fprintf(w, "problem: %s\n", printable(p.String()))
	}
	printWarnings(w, s)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printMirror(tw, s)
	printWebhooks(tw, s)
	printEndpoints(tw, s)
	printClusters(tw, s)
	printObjects(tw, s)
	printDecisions(tw, s, "FAILED OPEN", s.FailOpens)
	printDecisions(tw, s, "SHED", s.Sheds)
	printDecisions(tw, s, "DENIED", s.Denials)
	printHistory(tw, s)
	return tw.Flush()
}

// section begins a table.
func section(w io.Writer, header string) { _, _ = fmt.Fprintf(w, "\n%s\n", header) }

func line(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = dash(printable(fmt.Sprint(c)))
	}
	_, _ = fmt.Fprintln(w, strings.Join(texts, "\t"))
}

// shownWarnings is how many warnings of the configuration are printed.
const shownWarnings = 10

func printWarnings(w io.Writer, s *status.Status) {
	for _, p := range s.Warnings[:min(len(s.Warnings), shownWarnings)] {
		_, _ = fmt.Fprintf(w, "configuration warning: %s\n", printable(p.String()))
	}
	if more := len(s.Warnings) - shownWarnings; more > 0 {
		_, _ = fmt.Fprintf(w, "%s more: see dispatcher validate\n", status.Count(more, "configuration warning"))
	}
}

func milliseconds(s float64) string { return fmt.Sprintf("%.1fms", s*1e3) }

func printClusters(w io.Writer, s *status.Status) {
	section(w, "CLUSTER\tADMISSIONS\tDENIED\tFAILED OPEN\tSHED\tBYPASSED\tNAMESPACES")
	for i := range s.Clusters {
		c := &s.Clusters[i]
		namespaces := "by name only"
		if n := c.Namespaces; n != nil {
			namespaces = "watched"
			if n.Stale {
				namespaces = "stale"
			}
		}
		line(w, c.Name, c.Counts.Admissions, c.Counts.Denied, c.Counts.FailedOpen, c.Counts.Shed, c.Counts.Bypassed, namespaces)
	}
}

// printObjects prints what is known of the objects of clusters, where somebody reads any.
func printObjects(w io.Writer, s *status.Status) {
	titled := false
	for i := range s.Clusters {
		for _, o := range s.Clusters[i].Objects {
			if !titled {
				section(w, "OBJECTS OF CLUSTER\tRESOURCE\tSTATE\tCACHED\tNOT KEPT\tBYTES\tASKED FOR\tERROR")
				titled = true
			}
			state, unkept := "watched", fmt.Sprint(o.Unkept)
			if o.Stale {
				state = "stale"
			}
			if o.Partial {
				unkept += "+"
			}
			line(w, s.Clusters[i].Name, o.Resource, state, o.Cached, unkept, o.Bytes, o.LiveGets, o.Error)
		}
	}
}

func printDecisions(w io.Writer, s *status.Status, title string, list []status.Decision) {
	if len(list) == 0 {
		return
	}
	section(w, title+"\tCLUSTER\tPHASE\tOPERATION\tRESOURCE\tOBJECT\tBY\tCODE")
	for i := range list[:min(len(list), shownDecisions)] {
		d := &list[i]
		resource := d.Resource
		if d.Group != "" {
			resource += "." + d.Group
		}
		if d.Subresource != "" {
			resource += "/" + d.Subresource
		}
		code := ""
		if !d.Allowed {
			code = fmt.Sprint(d.Code)
		}
		line(w, since(s, d.Time), d.Cluster, d.Phase, d.Operation, resource, strings.TrimPrefix(d.Namespace+"/"+d.Name, "/"), involved(d), code)
	}
}

// involved says who decided; where that was no webhook, what.
func involved(d *status.Decision) string {
	if len(d.Webhooks) == 0 {
		return d.Decision
	}
	list := d.Webhooks
	var texts []string
	for _, w := range list {
		text := w.String()
		if w.Cause != "" {
			text += " (" + w.Cause + ")"
		}
		texts = append(texts, text)
	}
	for _, w := range d.Unavailable {
		texts = append(texts, fmt.Sprintf("%s (unavailable: %s)", w, w.Cause))
	}
	return strings.Join(texts, ", ")
}

func printHistory(w io.Writer, s *status.Status) {
	section(w, "CHANGED\tSNAPSHOT\tRESULT\tWEBHOOKS\tADDED\tREMOVED\tCHANGED")
	for i := range s.History[:min(len(s.History), shownDecisions)] {
		c := &s.History[i]
		result := "served"
		if c.Refused {
			result = "refused: " + status.Count(len(c.Problems), "problem")
		}
		if c.First {
			line(w, since(s, c.Time), c.Snapshot, "served: the first", c.Webhooks, "", "", "")
			continue
		}
		line(w, since(s, c.Time), c.Snapshot, result, c.Webhooks, len(c.Added), len(c.Removed), len(c.Changed))
	}
}

func since(s *status.Status, t time.Time) string {
	return s.Now.Sub(t).Round(time.Second).String() + " ago"
}

// printable keeps what a terminal or a table would obey out of a text: names come
// from requests.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
