// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"
)

// Six replicas are replaced, one after the other, each by a successor that is up first.
// Each is a lame duck for longer than its callers keep an idle connection: no call is lost.
// The times are those of an installation divided by 30: 3 s for 95 s, as 2.8 s for 90 s.
func TestRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs seven processes")
	}
	w := newWorld(t, build(t), "lameDuck: 3s\nlimits: {connectionAge: 10s}\nfleet: {file: fleet.json}")
	for range 6 {
		w.join()
	}
	w.tell()
	defer w.call(callers{servers: 20, workers: 3, pace: 40 * time.Millisecond, idle: 2800 * time.Millisecond})()
	w.shares(500)
	for _, old := range w.replicas[:6:6] {
		w.join()
		w.tell()
		old.Signal(syscall.SIGTERM)
		w.must(old.Until("it is not ready any more", func() bool { return !w.ready(old) }))
		w.leave(old)
		w.tell()
		select {
		case <-old.Exited():
		case <-time.After(patience):
			t.Fatal("it does not end")
		}
		if code := old.ExitCode(); code != 0 {
			t.Errorf("it exits with %d:\n%s", code, old.Tail())
		}
	}
	shares := w.shares(2000)
	t.Logf("six successors: %.2f", shares)
	for i, share := range shares {
		if share == 0 {
			t.Errorf("successor %d is not called", i)
		}
	}
}

// ready reports what a balancer asks.
func (w *world) ready(r replicaProcess) bool {
	resp, err := http.Get("http://" + r.admin + "/readyz") //nolint:noctx // bounded by the test
	if err != nil {
		return false
	}
	defer http.DefaultClient.CloseIdleConnections()
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
