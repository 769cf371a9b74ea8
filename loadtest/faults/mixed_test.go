// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// TestMixed plays one fault after the other against one process, for ten minutes
// (MINUTES=1 for one),
// and looks what is left of them.
func TestMixed(t *testing.T) {
	figure(t, "MIXED")
	const each = 4 * time.Second
	lasts := time.Duration(number("MINUTES", 10)) * time.Minute
	faults := []func(*world){
		all(proxy.Fault{Refuse: true, Sever: true}), first(proxy.Fault{BlackHole: true, Sever: true}), all(proxy.Fault{Silent: true, Sever: true}),
		all(proxy.Fault{ResetAtRequest: 1, Share: 0.2}), all(proxy.Fault{CloseIdle: true, Share: 0.2}), all(proxy.Fault{CorruptAt: 40, Share: 0.1}),
		behave(script.Behaviour{Delay: 1200 * time.Millisecond}), behave(script.Behaviour{Form: script.Cut}), behave(script.Behaviour{Hang: true}),
	}
	var before, after usage
	r := &row{id: "MIX", what: "mixed faults", servers: 3, before: 3 * time.Second, during: lasts, after: 20 * time.Second, binding: quickBreaker,
		excuses: []excuse{{cuts: true, causes: []history.Cause{
			history.Unreachable, history.Timeout, history.TLS, history.HTTPStatus, history.BadAnswer, history.BreakerOpen, history.Shed,
		}}},
		settle: 20 * time.Second, pause: 500 * time.Millisecond, bunch: 8}
	r.fault = func(w *world) {
		before = used(w.servers[0])
		w.every(each, int(lasts/each), func(i int) {
			all(proxy.Fault{})(w)
			behave(script.Behaviour{})(w)
			if i%2 == 0 {
				faults[i/2%len(faults)](w)
			}
		})
	}
	r.repair = func(w *world) {
		all(proxy.Fault{})(w)
		behave(script.Behaviour{})(w)
	}
	w, rec := r.run(t)
	after = used(w.servers[0])
	r.mustBeRight(t, w, rec)
	if n := w.servers[0].says("DATA RACE"); n > 0 {
		t.Errorf("%d data races:\n%s", n, w.servers[0].races())
	}
	progress("%s", r.line(rec))
	progress("MIX before: %v, after: %v", before, after)
}

// races returns what the race detector says first.
func (d *dispatcher) races() string {
	const enough = 6000
	text := d.Log()
	text = text[strings.Index(text, "WARNING: DATA RACE"):]
	return text[:min(len(text), enough)]
}

// usage is what a process holds.
type usage struct {
	threads, descriptors int
	memory               string
}

func (u usage) String() string {
	return fmt.Sprintf("%d descriptors, %d threads, %s", u.descriptors, u.threads, u.memory)
}

func used(d *dispatcher) usage {
	var u usage
	u.descriptors, _ = descriptors(d)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.ID()))
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "Threads: %d", &u.threads)
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			u.memory = strings.TrimSpace(text)
		}
	}
	return u
}
