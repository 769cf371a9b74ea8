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
	"strings"
	"sync"
	"time"
)

// patience bounds the wait for a process to serve.
const patience = 30 * time.Second

// process is a program of the stage, and the lines that it has written.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	news   chan struct{} // there are more lines

	mu    sync.Mutex
	lines []string
	seen  int // of lines, by await
}

// start starts a program that may use the given processors only, with variables
// beside those of this process.
func (l *lab) start(on cores, environment []string, program string, args ...string) (*process, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, args...), exited: make(chan struct{}), news: make(chan struct{}, 1)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = l.dir, in, in
	p.cmd.Env = append(os.Environ(), environment...)
	err = startOn(p.cmd, on)
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
		p.lines = append(p.lines, lines.Text())
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
	_ = p.cmd.Wait()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// await returns what found finds in the first line in which it finds something,
// after those that were awaited before.
func (p *process) await(found func(line string) string) (string, error) {
	late := time.After(patience)
	for {
		for line := range p.unseen {
			if got := found(line); got != "" {
				return got, nil
			}
		}
		select {
		case <-p.news:
		case <-p.exited:
			return "", fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), p.lastWords())
		case <-late:
			return "", fmt.Errorf("%s does not serve: %s", filepath.Base(p.cmd.Path), p.lastWords())
		}
	}
}

// unseen yields the lines that it has not yielded before.
func (p *process) unseen(yield func(string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.seen < len(p.lines) {
		p.seen++
		if !yield(p.lines[p.seen-1]) {
			return
		}
	}
}

// forget has await ignore what was said before.
func (p *process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = len(p.lines)
}

func (p *process) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) == 0 {
		return "it said nothing"
	}
	return p.lines[len(p.lines)-1]
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

// resident is the memory of the process, in MiB.
func (p *process) resident() (float64, error) {
	_, rest, found := strings.Cut(read(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); !found || err != nil {
		return 0, fmt.Errorf("no VmRSS of %s: %w", p.cmd.Path, err)
	}
	return kib / 1024, nil
}
