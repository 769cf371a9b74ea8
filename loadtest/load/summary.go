// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// Summary is what a record comes to, for all clusters and for each.
type Summary struct {
	Cluster  string `json:"cluster,omitempty"` // empty: all
	Calls    int    `json:"calls"`
	Allowed  int    `json:"allowed"`
	Denied   int    `json:"denied"`   // by a webhook
	Failed   int    `json:"failed"`   // denied because a webhook failed closed
	FailOpen int    `json:"failOpen"` // allowed with a warning of a webhook that failed
	Shed     int    `json:"shed"`
	Lost     int    `json:"lost"` // no answer

	// Latencies are from the time at which a call was due, not from the one at
	// which it could be sent: a slow answer is not hidden by the calls that it
	// held up.
	P50, P90, P99, P999, Max Milliseconds
}

// Milliseconds is a duration that is written in milliseconds.
type Milliseconds time.Duration

// String writes it with a tenth of a millisecond.
func (m Milliseconds) String() string {
	return fmt.Sprintf("%.1fms", float64(m)/float64(time.Millisecond))
}

// MarshalJSON writes a number of milliseconds.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", float64(m)/float64(time.Millisecond)), nil
}

// Summarize returns the Summary of all calls, and those of the clusters by name.
func Summarize(calls []history.Call) []Summary {
	by := map[string][]history.Call{}
	for _, c := range calls {
		by[c.Cluster] = append(by[c.Cluster], c)
	}
	list := []Summary{summarize("", calls)}
	for name, some := range by {
		list = append(list, summarize(name, some))
	}
	slices.SortFunc(list, func(a, b Summary) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return list
}

func summarize(cluster string, calls []history.Call) Summary {
	s := Summary{Cluster: cluster, Calls: len(calls)}
	h := hdrhistogram.New(1, (5 * time.Minute).Microseconds(), 3)
	for i := range calls {
		s.count(&calls[i])
		_ = h.RecordValue((calls[i].Done - calls[i].Intended).Microseconds()) // calls end before that
	}
	at := func(q float64) Milliseconds {
		return Milliseconds(time.Duration(h.ValueAtQuantile(q)) * time.Microsecond)
	}
	s.P50, s.P90, s.P99, s.P999, s.Max = at(50), at(90), at(99), at(99.9), at(100)
	return s
}

func (s *Summary) count(c *history.Call) {
	switch {
	case c.Err != "" || c.Status != 200:
		s.Lost++
	case c.Allowed && len(c.Annotations["dispatcher.dev.failed-open"]) > 0:
		s.FailOpen++
	case c.Allowed:
		s.Allowed++
	case c.Code == 429:
		s.Shed++
	case c.Code >= 500:
		s.Failed++
	default:
		s.Denied++
	}
}

// WriteTable writes summaries for people.
func WriteTable(w io.Writer, list []Summary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "CLUSTER\tCALLS\tALLOWED\tDENIED\tFAILED\tFAIL OPEN\tSHED\tLOST\tP50\tP90\tP99\tP99.9\tMAX") // Flush says
	for _, s := range list {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%v\t%v\t%v\t%v\n", cmp.Or(s.Cluster, "all"),
			s.Calls, s.Allowed, s.Denied, s.Failed, s.FailOpen, s.Shed, s.Lost, s.P50, s.P90, s.P99, s.P999, s.Max)
	}
	return t.Flush()
}
