// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// serving is how a dispatcher is started.
type serving struct {
	on          cores
	config      string   // file
	environment []string // beside this process's own
	binary      string   // empty: as everybody builds it
}

// startServe starts a dispatcher, and waits until it serves.
func (l *lab) startServe(how serving) (*target, error) {
	binary, err := how.binary, error(nil)
	if binary == "" {
		binary, err = l.build("cmd/dispatcher")
	}
	if err != nil {
		return nil, err
	}
	p, err := l.start(how.on, how.environment, binary, "serve", "--config", how.config)
	if err != nil {
		return nil, err
	}
	t := &target{name: "dispatcher", program: p, path: "/v1/clusters/%s/validate?timeout=10s"}
	t.address, t.admin, err = p.Serving()
	return t, err
}

// tell returns what the dispatcher answers at a path of its admin listener.
func (t *target) tell(l *lab, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(l.ctx, http.MethodGet, "http://"+t.admin+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", path, answer.Status, body)
	}
	return body, err
}

// live returns the MiB on the dispatcher's heap after a collection.
func (t *target) live(l *lab) (float64, error) {
	if _, err := t.tell(l, "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	text, err := t.tell(l, "/metrics")
	if err != nil {
		return 0, err
	}
	bytes, err := metric(text, "go_memstats_heap_alloc_bytes")
	return bytes / (1 << 20), err
}

// metric returns the value of a metric without labels, as /metrics has it.
func metric(text []byte, name string) (float64, error) {
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			return parse(strings.TrimSpace(rest))
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}
