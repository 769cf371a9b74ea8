// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
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

func TestAwait(t *testing.T) {
	p, _ := sh(t, `echo one >&2; echo two; echo three >&2; exit 3`)
	for _, want := range []string{"one", "three"} {
		got, err := p.Await(func(line string) string {
			if line == "two" { // is passed over, and not seen again
				return ""
			}
			return line
		})
		if got != want || err != nil {
			t.Errorf("awaited %q, got %q, %v", want, got, err)
		}
	}
	if got, err := p.Await(func(line string) string { return line }); err == nil {
		t.Errorf("behind the end: %q", got)
	}
	if got := p.Log(); got != "one\ntwo\nthree\n" { // of both outputs
		t.Errorf("log %q", got)
	}
	if code := p.ExitCode(); code != 3 {
		t.Errorf("exit code %d", code)
	}
}

func TestForget(t *testing.T) {
	p, lines := sh(t, `echo first >&2; read line; echo last >&2; exec sleep 600`)
	<-lines
	<-lines // standard input is empty
	p.Forget()
	p.Kill()
	if got, err := p.Await(func(line string) string { return line }); err == nil {
		t.Errorf("not forgotten: %q", got)
	}
}

func TestServing(t *testing.T) {
	p, _ := sh(t, `echo 'no JSON' >&2; echo '{"msg":"configuration loaded"}' >&2; echo '{"msg":"serving","listen":"a:1","admin":"b:2"}' >&2`)
	if listen, admin, err := p.Serving(); listen != "a:1" || admin != "b:2" || err != nil {
		t.Errorf("%s and %s: %v", listen, admin, err)
	}
}

func TestUntil(t *testing.T) {
	p, lines := sh(t, `echo ready >&2; exec sleep 600`)
	<-lines
	left := 3
	if err := p.Until("counted down", func() bool { left--; return left == 0 }); err != nil || left != 0 {
		t.Errorf("%d left: %v", left, err)
	}
	p.Kill()
	if err := p.Until("never", func() bool { return false }); err == nil {
		t.Error("what has ended became ready")
	}
}
