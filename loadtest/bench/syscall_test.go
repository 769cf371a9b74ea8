// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// calls are system calls by name. All that has no name in mostCalls is otherCalls.
type calls map[string]float64

const otherCalls = "all others"

// mostCalls is what an admission may ask of the kernel: what it takes, and a part of
// a call, for what happens now and then: a hedge, an answer that is not there yet. A
// further call of any kind in every admission is too many.
func mostCalls(webhooks float64) calls {
	const now = 0.7
	return calls{
		"write":       webhooks + 1 + now, // the request of each, and the answer
		"read":        webhooks + 1 + now, // the answer of each, and the request
		"recvfrom":    webhooks + now,     // whether the webhook has closed the connection
		"epoll_pwait": now,                // strace makes everybody else so fast that nobody waits for them
		otherCalls:    now,
	}
}

// TestSystemCalls holds down what an admission asks of the kernel, by one caller, so
// that no call is for several admissions at once. A busy machine adds calls, as those
// who wait have to be woken: the best of several rounds counts.
func TestSystemCalls(t *testing.T) {
	if os.Getenv("SYSTEM_CALLS") == "" {
		t.Skip("make syscalls runs it")
	}
	l, err := newLab(t.Context(), options{rounds: 10, span: 300 * time.Millisecond}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	s := &stage{}
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is missing, which .ci/run installs")
		}
		cannotCount(t, "strace is missing: apt-get install strace")
	}
	if err := s.split(l); err != nil {
		cannotCount(t, err.Error())
	}
	for _, step := range []func(*lab) error{s.issueAll, s.startWebhooks, s.register, s.startDispatcher} {
		if err := step(l); err != nil {
			t.Fatal(err)
		}
	}
	for _, cluster := range []struct {
		name     string
		webhooks float64
	}{{caller(1), 1}, {bare(1), 1}, {caller(mostWebhooks), mostWebhooks}, {bare(mostWebhooks), mostWebhooks}} {
		t.Run(cluster.name, func(t *testing.T) {
			w, err := l.lane(s, s.dispatcher, cluster.name)
			if err != nil {
				t.Fatal(err)
			}
			most := mostCalls(cluster.webhooks)
			for round := range l.rounds {
				var got calls
				err := l.apart(s, func() (err error) {
					got, err = l.countCalls(w, most)
					return err
				})
				if errors.Is(err, errNotAllowed) {
					cannotCount(t, err.Error())
				}
				if err != nil {
					t.Fatal(err)
				}
				over := got.over(most)
				t.Logf("round %d: %v; more than is meant: %q", round+1, got, over)
				if len(over) == 0 {
					return
				}
			}
			t.Errorf("an admission makes more system calls than is meant, which is %v", most)
		})
	}
}

// cannotCount skips the test where the machine does not let system calls be counted.
func cannotCount(t *testing.T, why string) {
	t.Helper()
	t.Skip("system calls are not counted: " + why)
}

// countedAdmissions are so many that what happens once is little beside them.
const countedAdmissions = 1000

var errNotAllowed = errors.New("strace may not look at another process: root may")

// countCalls returns the system calls of the process of a lane, all its threads, in an
// admission over a connection that is kept alive.
func (l *lab) countCalls(w *lane, named calls) (calls, error) {
	review := payload.PodCreate()
	if err := w.warmUp(&review, 1, l.span); err != nil {
		return nil, err
	}
	file := l.path("calls.txt")
	counter, err := process.Start(exec.CommandContext(l.ctx, "strace", "-f", "-c", "-o", file, "-p", strconv.Itoa(w.ID())), nil)
	if err != nil {
		return nil, err
	}
	defer counter.Kill()
	if _, err := counter.Await(func(line string) string {
		if !strings.Contains(line, " attached") {
			return ""
		}
		return line
	}); err != nil {
		if strings.Contains(counter.Log(), "Operation not permitted") {
			err = errNotAllowed
		}
		return nil, err
	}
	c := w.call(&review, 0)
	for range countedAdmissions {
		if err := c.admit(); err != nil {
			return nil, err
		}
	}
	counter.Signal(os.Interrupt) // strace leaves the process alone, and sums up
	<-counter.Exited()
	return parseCalls(read(file), named)
}

// parseCalls reads what strace -c writes, per admission: share, seconds, microseconds
// per call, calls, perhaps errors, and the name.
func parseCalls(text string, named calls) (calls, error) {
	got := calls{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		n, err := strconv.Atoi(fields[3])
		if err != nil {
			continue
		}
		name := fields[len(fields)-1]
		if name == "total" || name == "nanosleep" { // Go's monitor sleeps by the clock
			continue
		}
		if _, found := named[name]; !found {
			name = otherCalls
		}
		got[name] += float64(n) / countedAdmissions
	}
	if got["read"] == 0 || got["write"] == 0 {
		return nil, fmt.Errorf("strace has not counted: %q", text)
	}
	return got, nil
}

// String is such as "4.05 calls: read 2.04, write 2.01".
func (c calls) String() string {
	all, parts := 0.0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		all += c[name]
		parts = append(parts, fmt.Sprintf("%s %.2f", name, c[name]))
	}
	return fmt.Sprintf("%.2f calls: %s", all, strings.Join(parts, ", "))
}

// over returns what there is more of than bounds say.
func (c calls) over(most calls) []string {
	var list []string
	for name, n := range c {
		if n > most[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func TestCalls(t *testing.T) {
	const text = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.060000          10      2690        90 read
 20.00    0.020000          10      2000           write
 10.00    0.010000          10      1000      1000 recvfrom
  5.00    0.005000          10      5000           nanosleep
  3.00    0.005000          10       701           epoll_pwait
  1.00    0.005000          10       450        10 futex
  1.00    0.005000          10       300           openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.095000          10     12092      1100 total
`
	most := mostCalls(1)
	got, err := parseCalls(text, most)
	want := calls{"read": 2.69, "write": 2, "recvfrom": 1, "epoll_pwait": 0.701, otherCalls: 0.75}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if text := (calls{"write": 2, "read": 2.051}).String(); text != "4.05 calls: read 2.05, write 2.00" {
		t.Error(text)
	}
	if diff := cmp.Diff([]string{otherCalls, "epoll_pwait"}, got.over(most)); diff != "" {
		t.Error(diff)
	}
	if _, err := parseCalls("strace: nothing", most); err == nil {
		t.Error("counted nothing")
	}
}
