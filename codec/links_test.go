// SPDX-License-Identifier: Apache-2.0

//go:build unix

package codec_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
)

var links = flag.Bool("links", false, "print when compression pays: the table of docs/decisions/0011-payload-forms.md")

// link is a line to a webhook.
type link struct {
	name string
	bits float64 // a second
	rtt  time.Duration
}

// allLinks are between regions, and within one data centre.
func allLinks() []link {
	return []link{
		{"10 Mbit/s, 20 ms", 10e6, 20 * time.Millisecond},
		{"100 Mbit/s, 20 ms", 100e6, 20 * time.Millisecond},
		{"1 Gbit/s, 0.5 ms", 1e9, 500 * time.Microsecond},
		{"10 Gbit/s, 0.5 ms", 10e9, 500 * time.Microsecond},
	}
}

const (
	// initialWindow is what a new connection sends before it waits (RFC 6928).
	initialWindow = 10 * 1460
	// openWindow is one that holds nothing up.
	openWindow = 1 << 30
	// requestOverhead is about what HTTP's header and TLS add.
	requestOverhead = 400
)

func (l link) sending(bytes int) time.Duration {
	return time.Duration(float64(8*bytes) / l.bits * float64(time.Second))
}

// arrival is how long so many bytes take to leave on a connection whose window
// doubles with each round trip: while it is closed nothing is sent.
func (l link) arrival(bytes, window int) (took time.Duration) {
	for ; bytes > window; window *= 2 {
		took += max(l.rtt, l.sending(window))
		bytes -= window
	}
	return took + l.sending(bytes)
}

func TestArrival(t *testing.T) {
	slow, quick := allLinks()[0], allLinks()[3]
	for _, c := range []struct {
		name  string
		took  time.Duration
		wants time.Duration
	}{
		{"an open window", slow.arrival(1e6, openWindow), 800 * time.Millisecond},
		{"one flight", quick.arrival(12500, initialWindow), 10 * time.Microsecond},
		{"two flights", quick.arrival(initialWindow+12500, initialWindow), 510 * time.Microsecond},
		{"three flights", quick.arrival(3*initialWindow+12500, initialWindow), 1010 * time.Microsecond},
		{"a window that is larger than the line", slow.arrival(3*initialWindow, 2*initialWindow), slow.sending(3 * initialWindow)},
	} {
		if c.took != c.wants {
			t.Errorf("%s: %v, want %v", c.name, c.took, c.wants)
		}
	}
}

// TestLinks prints how long a review takes to a webhook: compressing and reading,
// as measured, and the line, as computed; on a connection that is in use and on a
// new one.
func TestLinks(t *testing.T) {
	if !*links {
		t.Skip("-links prints a table")
	}
	writeLinks(os.Stdout, payloads()[:4])
}

func writeLinks(w io.Writer, reviews []reference) {
	fmt.Fprint(w, "| | bytes | CPU")
	for _, l := range allLinks() {
		fmt.Fprintf(w, " | %s", l.name)
	}
	fmt.Fprintf(w, " |\n|%s\n", strings.Repeat("---|", 3+len(allLinks())))
	for _, p := range reviews {
		for c := codec.Identity; c <= codec.Zstd; c++ {
			writeLinkRow(w, p, c)
		}
	}
}

func writeLinkRow(w io.Writer, p reference, c codec.Coding) {
	size, cpu := len(p.text()), time.Duration(0)
	if c != codec.Identity {
		size, cpu = throughCoding([]byte(p.text()), c)
	}
	fmt.Fprintf(w, "| %s, %s | %d | %s", p.name, named(c), size, milliseconds(cpu))
	for _, l := range allLinks() {
		used := cpu + l.arrival(size+requestOverhead, openWindow)
		fresh := cpu + l.arrival(size+requestOverhead, initialWindow)
		fmt.Fprintf(w, " | %s / %s", milliseconds(used), milliseconds(fresh))
	}
	fmt.Fprintln(w, " |")
}

func named(c codec.Coding) string {
	if c == codec.Identity {
		return "none"
	}
	return c.String()
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3g", float64(d)/float64(time.Millisecond))
}

// throughCoding returns the compressed size, and the CPU time of compressing and
// reading together: the least of several attempts.
func throughCoding(body []byte, c codec.Coding) (size int, took time.Duration) {
	const attempts, atLeast = 7, 50 * time.Millisecond
	var packed, read []byte
	for i := range attempts {
		n, began := 0, cpuTime()
		for n == 0 || cpuTime()-began < atLeast {
			packed = codec.AppendCompressed(packed[:0], c, body)
			read, _ = codec.Decompress(read[:0], c.String(), packed, len(body), nil) // TestAppendCompressed has the errors
			n++
		}
		if each := (cpuTime() - began) / time.Duration(n); i == 0 || each < took {
			took = each
		}
	}
	return len(packed), took
}

// cpuTime is what the process has used, user and system.
func cpuTime() time.Duration {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // cannot fail for oneself
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
