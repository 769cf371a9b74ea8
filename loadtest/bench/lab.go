// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// options are what the command line asks for.
type options struct {
	rounds int
	span   time.Duration // of one measurement
	note   string
}

// lab is where figures are measured. What several of them need is made or measured
// once.
type lab struct {
	options
	ctx      context.Context
	root     string // of the repository
	dir      string // for what is built and generated
	progress io.Writer
	known    map[string]any // by what was asked for
	ends     []func()
}

func newLab(ctx context.Context, o options, progress io.Writer) (*lab, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("find the root of the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "dispatcher-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{options: o, ctx: ctx, root: strings.TrimSpace(string(root)), dir: dir, progress: progress, known: map[string]any{}}
	l.atEnd(func() { _ = os.RemoveAll(dir) })
	return l, nil
}

// atEnd has f called by close, before what was added earlier.
func (l *lab) atEnd(f func()) { l.ends = append(l.ends, f) }

func (l *lab) close() {
	for i := len(l.ends) - 1; i >= 0; i-- {
		l.ends[i]()
	}
}

// say tells whoever waits what is being done.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(l.progress, format+"\n", args...)
}

// remember calls f once for each key.
func remember[T any](l *lab, key string, f func() (T, error)) (T, error) {
	type kept struct {
		value T
		err   error
	}
	if k, found := l.known[key].(kept); found {
		return k.value, k.err
	}
	l.say("%s", key)
	value, err := f()
	l.known[key] = kept{value, err}
	return value, err
}

// build compiles a command of the repository.
func (l *lab) build(pkg string) (string, error) {
	return remember(l, "build "+pkg, func() (string, error) {
		binary := filepath.Join(l.dir, filepath.Base(pkg))
		cmd := exec.CommandContext(l.ctx, "go", "build", "-trimpath", "-o", binary, "./"+pkg)
		cmd.Dir = l.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build ./%s: %w: %s", pkg, err, lastLine(out))
		}
		return binary, nil
	})
}

// path is a file of the lab's directory.
func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// write makes a file of the lab's directory.
func (l *lab) write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(l.path(name)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(l.path(name), data, 0o600)
}
