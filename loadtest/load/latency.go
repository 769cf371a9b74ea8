// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is how long answers took, from the time at which a call was due, not from the
// one at which it could be sent: a slow answer is not hidden by the calls that it held up.
// Lost calls are not in it.
type Latency struct {
	P50     Seconds  `json:"p50Seconds"`
	P90     Seconds  `json:"p90Seconds"`
	P99     Seconds  `json:"p99Seconds"`
	P999    Seconds  `json:"p999Seconds"`
	Max     Seconds  `json:"maxSeconds"`
	Buckets []Bucket `json:"buckets"`
}

// Seconds is a duration that is written in seconds in JSON, in milliseconds for people.
type Seconds time.Duration

// String writes milliseconds with a tenth.
func (s Seconds) String() string {
	return fmt.Sprintf("%.1fms", float64(s)/float64(time.Millisecond))
}

// MarshalJSON writes a number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.6f", time.Duration(s).Seconds()), nil
}

// Bucket is how many answers took up to UpTo, and longer than the Bucket before.
type Bucket struct {
	UpTo  Seconds `json:"upToSeconds"`
	Calls int64   `json:"calls"`
}

// bounds are those of the Buckets: 1, 2 and 5 of each power of ten.
func bounds() []time.Duration {
	var all []time.Duration
	for power := 100 * time.Microsecond; power <= 100*time.Second; power *= 10 {
		all = append(all, power, 2*power, 5*power)
	}
	return all
}

// newLatency reads a histogram of microseconds.
func newLatency(h *hdrhistogram.Histogram) Latency {
	at := func(q float64) Seconds { return Seconds(time.Duration(h.ValueAtQuantile(q)) * time.Microsecond) }
	l := Latency{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: at(100), Buckets: []Bucket{}}
	counts, limits := make([]int64, len(bounds())), bounds()
	for _, bar := range h.Distribution() {
		took := time.Duration(bar.From) * time.Microsecond // which To is not more than a thousandth above
		for i, limit := range limits {
			if took <= limit || i == len(limits)-1 {
				counts[i] += bar.Count
				break
			}
		}
	}
	first, last := 0, len(counts)
	for first < last && counts[first] == 0 {
		first++
	}
	for last > first && counts[last-1] == 0 {
		last--
	}
	for i := first; i < last; i++ {
		l.Buckets = append(l.Buckets, Bucket{Seconds(limits[i]), counts[i]})
	}
	return l
}

const barWidth = 50

// writeBuckets draws the Buckets.
func (l *Latency) writeBuckets(w io.Writer) error {
	var most int64
	for _, b := range l.Buckets {
		most = max(most, b.Calls)
	}
	for _, b := range l.Buckets {
		bar := strings.Repeat("#", int((b.Calls*barWidth+most-1)/most))
		if _, err := fmt.Fprintf(w, "up to %9s %8d %s\n", time.Duration(b.UpTo), b.Calls, bar); err != nil {
			return err
		}
	}
	return nil
}
