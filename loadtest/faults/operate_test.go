// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// corrupt makes the configuration unreadable in several ways. Each is refused, and
// that what is served is older shows.
func corrupt(rec *record, w *world) {
	d, path := w.servers[0], filepath.Join(w.dir, "registry")
	away := path + ".away"
	good, err := os.ReadFile(filepath.Join(path, "webhooks.yaml"))
	w.must(err)
	since := w.metric(d, "dispatcher_config_last_success_timestamp_seconds")
	problems := func() float64 { return w.metric(d, "dispatcher_config_problems") }
	webhooks := func(text []byte) func() { return func() { w.write("registry/webhooks.yaml", text) } }
	leave := func() { w.must(os.Rename(path, away)) }
	for _, step := range []struct {
		what          string
		spoil, repair func()
	}{
		{"corrupt", webhooks([]byte("kind: [")), webhooks(good)},
		{"truncated", webhooks(good[:len(good)/2]), webhooks(good)},
		{"gone", leave, func() { w.must(os.Rename(away, path)) }},
		{"empty", func() { leave(); w.must(os.Mkdir(path, 0o700)) }, func() { w.must(errors.Join(os.Remove(path), os.Rename(away, path))) }},
	} {
		before := w.metric(d, "dispatcher_config_reloads_total", `result="failure"`)
		step.spoil()
		if !eventually(func() bool { return w.metric(d, "dispatcher_config_reloads_total", `result="failure"`) > before }) {
			rec.errorf("a configuration that is %s was not refused", step.what)
		}
		if problems() == 0 {
			rec.errorf("a configuration that is %s is not seen to have problems", step.what)
		}
		pass(400 * time.Millisecond) // in which nothing may change
		if w.metric(d, "dispatcher_config_last_success_timestamp_seconds") != since {
			rec.errorf("a configuration that is %s was loaded", step.what)
		}
		step.repair()
		if !eventually(func() bool { return problems() == 0 }) {
			rec.errorf("the configuration that was %s is well again, and its problems are still there", step.what)
		}
		since = w.metric(d, "dispatcher_config_last_success_timestamp_seconds")
	}
}

// blockLog keeps the log from being read until readLog.
func blockLog(w *world) { w.servers[0].reading.Lock() }

func readLog(w *world) { w.servers[0].reading.Unlock() }

// rollingRestarts replaces the process n times, each by a successor that is up.
func rollingRestarts(n int) func(*record, *world) {
	return func(rec *record, w *world) {
		for range n {
			pass(restartEvery)
			old := w.servers[len(w.servers)-1]
			w.front.Retarget(w.serve(&row{}).address)
			old.End()
			if !strings.Contains(old.Log(), `"drained"`) {
				rec.errorf("a process has ended without saying that it is drained")
			}
		}
	}
}

// kills ends processes without warning, one of two replicas each time, while calls
// go to both.
func kills(n int) func(*record, *world) {
	return func(rec *record, w *world) {
		w.started = append(w.started, w.startReady())
		for range n {
			replicas := w.servers[len(w.servers)-2:]
			w.front.Retarget(replicas[0].address, replicas[1].address)
			pass(killEvery)
			w.front.Retarget(replicas[1].address) // a load balancer that knows
			w.killed = append(w.killed, w.now())
			replicas[0].Signal(syscall.SIGKILL)
			replicas[0].Kill()
			w.started = append(w.started, w.startReady())
		}
	}
}

// startReady starts another replica and returns how long it takes until it is ready,
// beyond what it takes to start a process of it that does nothing.
func (w *world) startReady() time.Duration {
	w.t.Helper()
	begin := time.Now()
	w.must(exec.Command(binary, "version").Run())
	nothing := time.Since(begin)
	begin = time.Now()
	d := w.serve(&row{})
	for {
		if _, err := d.get("/readyz"); err == nil {
			return max(0, time.Since(begin)-nothing)
		}
		pass(time.Millisecond)
	}
}

// fewLost: of calls none is lost but those that were under way when a process was
// killed, and each process was ready in time.
func fewLost(n int) func(*findings, *world, *record) {
	return func(t *findings, w *world, rec *record) {
		const around = 50 * time.Millisecond // in which a caller learns of a kill
		lost, underWay := make([]int, len(w.killed)), make([]int, len(w.killed))
		for _, c := range rec.calls {
			at := -1
			for i, killed := range w.killed {
				if c.Sent < killed+around && c.Done > killed {
					at = i
				}
			}
			if at >= 0 {
				underWay[at]++
			}
			switch {
			case c.Err == "":
			case at < 0:
				t.Errorf("lost while nobody was killed:\n%s", rec.story(c.UID))
			default:
				lost[at]++
			}
		}
		if len(w.killed) < n {
			t.Errorf("%d processes were killed, %d should have been", len(w.killed), n)
		}
		progress("F35  %d kills, %d under way at each, %d lost; ready %v after the start", len(w.killed), underWay, lost, w.started)
		for _, took := range w.started {
			if took > time.Second {
				t.Errorf("ready %v after the start of the process", took)
			}
		}
	}
}
