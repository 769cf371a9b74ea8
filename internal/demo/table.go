// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one line of the table that the demo prints.
type row struct {
	play    play
	uid     string
	answer  answer
	called  []string
	elapsed time.Duration
	wrong   []string // in what the answer differs from what is wanted
}

// printTable prints a line per play, with what is wrong below it.
func printTable(w io.Writer, rows []row) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CLUSTER\tPHASE\tOPERATION\tRESOURCE\tVERDICT\tWEBHOOKS CALLED\tTIME\tMESSAGE")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.play.cluster, r.play.phase, r.play.request.Operation, r.resource(),
			r.answer.verdict(), strings.Join(r.called, " "), r.elapsed.Round(100*time.Microsecond), r.message())
	}
	_ = tw.Flush()
	for i := range rows {
		for _, wrong := range rows[i].wrong {
			fmt.Fprintf(w, "WRONG in line %d (%s): %s\n", i+1, rows[i].play.about, wrong)
		}
	}
}

func (r *row) resource() string {
	q := r.play.request
	return fmt.Sprintf("%s %s/%s", q.Resource.Resource, q.Namespace, q.Name)
}

// message is the point of the play with what the user reads.
func (r *row) message() string {
	text := r.play.about
	if said := r.answer.said(); len(said) > 0 {
		text += ": " + strings.Join(said, " | ")
	}
	return text
}
