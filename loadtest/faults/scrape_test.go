// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// get returns what the admin listener has at the path.
func (d *dispatcher) get(path string) (string, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + d.admin + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, resp.Status)
	}
	return string(text), err
}

// metric is the sum of the series of a family that have all of the labels, which are
// written as in name="value".
func (w *world) metric(d *dispatcher, family string, labels ...string) float64 {
	w.t.Helper()
	text, err := d.get("/metrics")
	w.must(err)
	sum := 0.0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rest, ok := strings.CutPrefix(name, family); !ok || rest != "" && rest[0] != '{' {
			continue
		}
		if end := strings.LastIndexByte(line, '}'); end >= 0 { // values of labels may have spaces
			name, value = line[:end+1], strings.TrimSpace(line[end+1:])
		}
		all := true
		for _, l := range labels {
			all = all && strings.Contains(name, l)
		}
		if all {
			n, err := strconv.ParseFloat(value, 64)
			w.must(err)
			sum += n
		}
	}
	return sum
}

// goroutines counts those of the process, without workers that are kept for a while
// although they have nothing to do.
func (w *world) goroutines(d *dispatcher) int {
	w.t.Helper()
	text, err := d.get("/debug/pprof/goroutine?debug=1")
	w.must(err)
	n := 0
	for _, stack := range strings.Split(text, "\n\n") {
		s := bufio.NewScanner(strings.NewReader(stack))
		count := 0
		for s.Scan() {
			if _, err := fmt.Sscanf(s.Text(), "%d @", &count); err == nil {
				break
			}
		}
		if idle(stack) {
			continue
		}
		n += count
	}
	return n
}

// idle reports whether a stack is that of a worker that waits for work.
func idle(stack string) bool {
	return strings.Contains(stack, ".workerFunc") && !strings.Contains(stack, "serveConn") ||
		strings.Contains(stack, "worker.(*Pool[") && !strings.Contains(stack, "(*race)") && !strings.Contains(stack, "hook.")
}

// longest is how long a row waits for what should be there within a second.
const longest = 15 * time.Second

// eventually waits until ok.
func eventually(ok func() bool) bool { return within(longest, ok) }

// within waits until ok, but no longer than that.
func within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); !ok(); pass(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
