// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// usage is what one admission cost, on average over a batch.
type usage struct {
	caller     float64 // microseconds of CPU, user and system, in this process
	dispatcher float64 // the same in the dispatcher's
	allocs     float64 // in this process
	bytes      float64
}

// together is the CPU of the caller and the dispatcher, in microseconds.
func (u usage) together() float64 { return u.caller + u.dispatcher }

// meter measures batches of admissions.
type meter struct {
	dispatcher int // process id
	batch      int // admissions
	inFlight   int // admissions at once
}

// measure runs a batch. What it does itself lies outside of the caller's readings.
func (m meter) measure(t *testing.T, c *plainCaller) usage {
	t.Helper()
	runtime.GC() // so that nobody pays for the garbage of the batch before
	var before, after runtime.MemStats
	dispatcherBefore := processCPU(t, m.dispatcher)
	runtime.ReadMemStats(&before)
	callerBefore := ownCPU(t)
	m.run(t, c)
	cpu := ownCPU(t) - callerBefore
	runtime.ReadMemStats(&after)
	return usage{
		caller:     m.each(cpu),
		dispatcher: m.each(processCPU(t, m.dispatcher) - dispatcherBefore),
		allocs:     float64(after.Mallocs-before.Mallocs) / float64(m.batch),
		bytes:      float64(after.TotalAlloc-before.TotalAlloc) / float64(m.batch),
	}
}

// run has each of inFlight goroutines take its share of the batch.
func (m meter) run(t *testing.T, c *plainCaller) {
	t.Helper()
	var (
		left    atomic.Int64
		callers sync.WaitGroup
	)
	left.Store(int64(m.batch))
	for range m.inFlight {
		callers.Go(func() {
			for left.Add(-1) >= 0 {
				if err := c.admit(t.Context()); err != nil {
					t.Errorf("not allowed: %v", err)
				}
			}
		})
	}
	callers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// each is the share of one admission, in microseconds.
func (m meter) each(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / 1000 / float64(m.batch)
}

// ownCPU is the CPU time of this process.
func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// processCPU is the CPU time of all threads of another process: the first number
// of each schedstat, in nanoseconds.
func processCPU(t *testing.T, pid int) time.Duration {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("no schedstat of process %d: %v", pid, err)
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			t.Fatal(err)
		}
		var running time.Duration
		if _, err := fmt.Sscan(string(text), &running); err != nil {
			t.Fatalf("%s: %q: %v", thread, text, err)
		}
		sum += running
	}
	return sum
}
