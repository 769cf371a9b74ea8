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

	Reasons []Reason `json:"reasons"` // why calls were lost, the most frequent first
	Latency Latency  `json:"latency"`
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
	h, lost := hdrhistogram.New(1, (5*time.Minute).Microseconds(), 3), reasons{}
	for i := range calls {
		c := &calls[i]
		s.count(c)
		if why, is := isLost(c); is {
			lost.add(why)
			continue
		}
		_ = h.RecordValue((c.Done - c.Intended).Microseconds()) // calls end before that
	}
	s.Reasons, s.Latency = lost.list(), newLatency(h)
	return s
}

func (s *Summary) count(c *history.Call) {
	_, lost := isLost(c)
	switch {
	case lost:
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
			s.Calls, s.Allowed, s.Denied, s.Failed, s.FailOpen, s.Shed, s.Lost, s.Latency.P50, s.Latency.P90, s.Latency.P99, s.Latency.P999, s.Latency.Max)
	}
	return t.Flush()
}

// WriteText writes a Summary for people: counts, how long answers took, and why calls were
// lost.
func WriteText(w io.Writer, s *Summary) error {
	if err := WriteTable(w, []Summary{*s}); err != nil {
		return err
	}
	if len(s.Latency.Buckets) > 0 {
		_, _ = fmt.Fprintln(w, "\nanswers by the time that they took:")
		if err := s.Latency.writeBuckets(w); err != nil {
			return err
		}
	}
	if s.Lost == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%d of %d calls were lost:\n", s.Lost, s.Calls)
	for _, r := range s.Reasons {
		_, err = fmt.Fprintf(w, "%8d  %s\n", r.Calls, r.Reason)
	}
	return err
}
