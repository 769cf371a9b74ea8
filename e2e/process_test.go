// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a program that runs, with its output in a file.
type process struct {
	cmd    *exec.Cmd
	name   string
	log    string // the file
	exited chan struct{}
}

// start starts a program. Its log is dir/name.log.
func start(dir, name, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// await polls until ready returns true.
func (p *process) await(what string, ready func() bool) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		if ready() {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s has ended:\n%s", p.name, p.tail())
		default:
		}
	}
	return fmt.Errorf("%s: %s does not become true:\n%s", p.name, what, p.tail())
}

// end asks the process to end, and returns when it has.
func (p *process) end() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.kill()
	}
}

func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// tail is the end of the log.
func (p *process) tail() string {
	const enough = 4 << 10
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(data) > enough {
		data = data[len(data)-enough:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return string(data)
}
