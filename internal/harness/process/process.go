// SPDX-License-Identifier: Apache-2.0

// Package process runs other programs for as long as a test needs them, follows
// what they log and leaves none behind.
package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds every wait for a program. Nothing is expected to come near it.
const patience = time.Minute

// Process is a program that runs, with what it has logged. It is safe for
// concurrent use, but one goroutine at a time awaits.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	news   chan struct{} // there is more to read

	mu   sync.Mutex
	log  bytes.Buffer
	seen int // bytes of the log that were awaited
}

// Start starts cmd. Its standard error, and its standard output unless cmd says
// where that goes, are its log. It must be ended with End or Kill; where the system
// can, it also ends with the caller's process. line, if not nil, is told of each
// line of the log, which it borrows until it returns; as long as it blocks nobody
// reads.
func Start(cmd *exec.Cmd, line func([]byte)) (*Process, error) {
	return StartBy(cmd, line, cmd.Start)
}

// StartBy is Start for a cmd that start starts. It is called on an operating system
// thread that does nothing else, and may change it.
func StartBy(cmd *exec.Cmd, line func([]byte), start func() error) (*Process, error) {
	log, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	p := &Process{cmd: cmd, exited: make(chan struct{}), news: make(chan struct{}, 1)}
	cmd.Stderr = in
	if cmd.Stdout == nil {
		cmd.Stdout = in
	}
	dieWithParent(cmd)
	err = p.spawn(start)
	_ = in.Close() // the child has it
	if err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	go p.follow(log, line)
	return p, nil
}

// spawn starts the child on a thread that lives as long as the child: the parent of
// a process, with whose death the child's is tied, is a thread.
func (p *Process) spawn(start func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		err := start()
		started <- err
		if err == nil {
			<-p.exited
		}
	}()
	return <-started
}

// follow reads the log until the process has ended.
func (p *Process) follow(log io.ReadCloser, line func([]byte)) {
	defer close(p.exited)
	defer func() { _ = log.Close() }()
	for lines := bufio.NewReader(log); ; {
		text, err := lines.ReadBytes('\n')
		p.mu.Lock()
		p.log.Write(text)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
		if line != nil && len(text) > 0 {
			line(text)
		}
		if err != nil {
			break
		}
	}
	_ = p.cmd.Wait() // it is killed more often than not
}

// ID is the number that the system knows the process by.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended and its log is read to the end.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitCode waits until the process has ended; it is -1 if a signal ended it.
func (p *Process) ExitCode() int {
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends s to the process, if it still runs.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// End asks the process to end, kills it if it does not in time, and returns when it
// has ended.
func (p *Process) End() {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.Kill()
	}
}

// Kill ends the process without warning, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Log returns what was logged so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Tail returns the last lines of the log, for people.
func (p *Process) Tail() string {
	const enough = 3000
	log := p.Log()
	if len(log) <= enough {
		return log
	}
	_, whole, _ := strings.Cut(log[len(log)-enough:], "\n")
	return whole
}
