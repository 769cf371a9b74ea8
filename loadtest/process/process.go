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
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a program may take to end when it is asked to.
const patience = 30 * time.Second

// Process is a program that runs, with what it has logged. It is safe for
// concurrent use.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Start starts cmd, whose standard error is its log. It must be ended with End or
// Kill; where the system can, it also ends with the caller's process. line, if not
// nil, is told of each line of the log, which it borrows until it returns; as long
// as it blocks nobody reads.
func Start(cmd *exec.Cmd, line func([]byte)) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	dieWithParent(cmd)
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	go p.follow(log, line)
	return p, nil
}

// follow reads the log until the process has ended.
func (p *Process) follow(log io.Reader, line func([]byte)) {
	defer close(p.exited)
	for lines := bufio.NewReader(log); ; {
		text, err := lines.ReadBytes('\n')
		p.mu.Lock()
		p.log.Write(text)
		p.mu.Unlock()
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

// Signal sends s to the process, if it still runs.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// End asks the process to end, kills it if it does not within half a minute, and
// returns when it has ended.
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
