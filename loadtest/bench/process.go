// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// patience bounds the wait for a process to serve.
const patience = 30 * time.Second

// process is a program of the stage. Each line that it writes goes to said.
type process struct {
	cmd    *exec.Cmd
	said   chan string
	exited chan struct{}

	mu   sync.Mutex
	last string
}

// start starts a program that may use the given processors only.
func (l *lab) start(cores cores, program string, args ...string) (*process, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, args...), said: make(chan string, 64), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = l.dir, in, in
	err = startOn(p.cmd, cores)
	_ = in.Close()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	go p.follow(out)
	l.atEnd(p.kill)
	return p, nil
}

// follow reads until the process has ended.
func (p *process) follow(out io.ReadCloser) {
	defer close(p.exited)
	defer out.Close()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.last = lines.Text()
		p.mu.Unlock()
		select {
		case p.said <- lines.Text():
		default: // nobody listens any more
		}
	}
	_ = p.cmd.Wait()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// await returns the first line that found finds something in.
func (p *process) await(found func(line string) string) (string, error) {
	late := time.After(patience)
	for {
		select {
		case line := <-p.said:
			if got := found(line); got != "" {
				return got, nil
			}
		case <-p.exited:
			return "", fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), p.lastWords())
		case <-late:
			return "", fmt.Errorf("%s does not serve: %s", filepath.Base(p.cmd.Path), p.lastWords())
		}
	}
}

func (p *process) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// cpu is what all threads of the process have used, user and system: the first
// number of each schedstat, in nanoseconds.
func (p *process) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("no schedstat of %s: %w", p.cmd.Path, err)
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		var running time.Duration
		if _, err := fmt.Fscan(bytes.NewReader(text), &running); err != nil {
			return 0, fmt.Errorf("%s: %w", thread, err)
		}
		sum += running
	}
	return sum, nil
}
