// SPDX-License-Identifier: Apache-2.0

// Package binary runs the shipped dispatcher as a child process: a black box with
// a configuration file, a directory of manifests, a port and signals.
package binary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Options is what a Process is started with.
type Options struct {
	// Path of the binary.
	Path string
	// Dir is a directory for the configuration. Its registry may have manifests.
	Dir string
	// Clients issues the certificates of the clusters, and the server's own.
	Clients *Authority
	// Manifests to be added to the registry, by file name.
	Manifests map[string][]byte
	// LogLevel is error unless said.
	LogLevel string
}

// Process is a dispatcher that serves on loopback.
type Process struct {
	URL string // https://127.0.0.1:port

	path, config string

	cmd    *exec.Cmd
	log    bytes.Buffer
	exited chan struct{}
}

// logSize is how much of a log is shown.
const logSize = 4 << 10

// startTimeout is for a machine that is busy with other tests.
const startTimeout = time.Minute

// Start writes the configuration, starts the process and waits until it is ready.
// The caller stops it.
func Start(ctx context.Context, o Options) (*Process, error) {
	listen, admin, err := freePorts()
	if err != nil {
		return nil, err
	}
	p := &Process{
		URL:    "https://" + listen,
		exited: make(chan struct{}),
		path:   o.Path,
		config: filepath.Join(o.Dir, "dispatcher.yaml"),
	}
	config := p.config
	if err := o.write(listen, admin); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, o.Path, "validate", "--config", config).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the dispatcher refuses its configuration: %w\n%s", err, problems(out))
	}
	p.cmd = exec.Command(o.Path, "serve", "--config", config)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// The kernel ends the child with the test, however the test ends.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.spawn(); err != nil {
		return nil, err
	}
	if err := p.ready(ctx, "http://"+admin+"/readyz"); err != nil {
		p.kill()
		return nil, fmt.Errorf("%w\n%s", err, p.logged())
	}
	return p, nil
}

// Registration returns what the dispatcher prints for a cluster to apply.
func (p *Process) Registration(ctx context.Context, cluster string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, p.path, "registration", "--config", p.config, "--cluster", cluster).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("dispatcher registration: %w\n%s", err, exit.Stderr)
	}
	return out, err
}

// problems are the lines of what validate prints that are more than warnings.
func problems(out []byte) []byte {
	lines := slices.DeleteFunc(bytes.SplitAfter(out, []byte("\n")), func(line []byte) bool { return bytes.HasPrefix(line, []byte("warning")) })
	all := bytes.Join(lines, nil)
	return all[:min(len(all), logSize)]
}

// spawn starts the child from a thread that lives as long as the child: the
// parent of a process, whose death the child would follow, is a thread.
func (p *Process) spawn() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the exit status is in ProcessState
		}
		close(p.exited)
	}()
	return <-started
}

func (p *Process) ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("the dispatcher exited: %v", p.cmd.ProcessState)
		case <-ctx.Done():
			return errors.New("the dispatcher did not become ready")
		}
	}
}

// Stop ends the process as an operator would, and tells how that went. An error in
// its log is one here.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(startTimeout):
		p.kill()
		return errors.New("the dispatcher did not end on SIGTERM")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the dispatcher exited with %d\n%s", code, p.logged())
	}
	if i := bytes.Index(p.log.Bytes(), []byte(`"level":"ERROR"`)); i >= 0 {
		return fmt.Errorf("the dispatcher says: %s", p.log.Bytes()[i:min(p.log.Len(), i+logSize)])
	}
	return nil
}

func (p *Process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}

// logged is the beginning of the log, which says what was wrong first.
func (p *Process) logged() []byte { return p.log.Bytes()[:min(p.log.Len(), logSize)] }

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

func freePorts() (listen, admin string, err error) {
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer b.Close()
	return a.Addr().String(), b.Addr().String(), nil
}
