// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/loadtest/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sh runs a script, and hands over the lines that it logs.
func sh(t *testing.T, script string) (*process.Process, <-chan string) {
	t.Helper()
	lines := make(chan string, 10)
	p, err := process.Start(exec.CommandContext(t.Context(), "sh", "-c", script), func(line []byte) { lines <- string(line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, lines
}

func TestStart(t *testing.T) {
	p, lines := sh(t, "echo first >&2; printf last >&2")
	<-p.Exited()
	if first, last := <-lines, <-lines; first != "first\n" || last != "last" || p.Log() != "first\nlast" || p.Tail() != p.Log() {
		t.Errorf("lines %q and %q, log %q", first, last, p.Log())
	}
}

// A process that is asked to end may still say something.
func TestEnd(t *testing.T) {
	p, lines := sh(t, `trap 'echo asked >&2; exit' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	<-lines
	p.End()
	if got := <-lines; got != "asked\n" {
		t.Errorf("logged %q", got)
	}
}

func TestKill(t *testing.T) {
	p, lines := sh(t, `echo ready >&2; exec sleep 600`)
	<-lines
	p.Kill()
	p.Kill() // twice is once
	if p.ID() == 0 {
		t.Error("it never ran")
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := process.Start(exec.CommandContext(t.Context(), "/nowhere"), nil); err == nil {
		t.Error("it has started")
	}
}
