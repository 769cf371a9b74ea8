// SPDX-License-Identifier: Apache-2.0

// Package binary runs the shipped dispatcher as a child process: a black box with
// a configuration file, a directory of manifests, a port and signals.
package binary

import (
	"strings"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"

	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
)

// Options is what a Process is started with.
type Options struct {
	// Path of the binary.
	Path string
	// Dir is a directory for the configuration. Its registry may have manifests.
	Dir string
	// Clients issues the certificates of the clusters, and the server's own.
	Clients *pki.Authority
	// Manifests to be added to the registry, by file name.
	Manifests map[string][]byte
	// LogLevel is error unless said.
	LogLevel string
}

// Process is a dispatcher that serves on loopback.
type Process struct {
	URL string // https://127.0.0.1:port

	*process.Process

	path, config string
}

// logSize is how much of a log is shown.
const logSize = 4 << 10

// Start writes the configuration, starts the process and waits until it is ready.
// The caller stops it.
func Start(ctx context.Context, o Options) (*Process, error) {
	listen, admin, err := freePorts()
	if err != nil {
		return nil, err
	}
	p := &Process{
		URL:    "https://" + listen,
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
	if p.Process, err = process.Start(exec.Command(o.Path, "serve", "--config", config), nil); err != nil {
		return nil, err
	}
	if err := p.Until("being ready", func() bool { return answers(ctx, "http://"+admin+"/readyz") }); err != nil {
		p.Kill()
		return nil, err
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

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Stop ends the process as an operator would, and tells how that went. An error in
// its log is one here.
func (p *Process) Stop() error {
	p.End()
	log := p.Log()
	if code := p.ExitCode(); code != 0 {
		return fmt.Errorf("the dispatcher exited with %d\n%s", code, log[:min(len(log), logSize)])
	}
	if i := strings.Index(log, `"level":"ERROR"`); i >= 0 {
		return fmt.Errorf("the dispatcher says: %s", log[i:min(len(log), i+logSize)])
	}
	return nil
}

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
