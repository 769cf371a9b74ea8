// SPDX-License-Identifier: Apache-2.0

// Package fleet knows the other replicas: how many share the clusters' calls, so that
// what a replica spends by itself can be divided, and which cell a cluster belongs to.
//
// Only the number is needed. Replicas count nothing together, because a shared counter
// is one more thing that can fail in front of all clusters.
package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

const (
	// MaxReplicas is the largest Size. A file that says more is not believed: what is
	// divided by it would stand still.
	MaxReplicas = 1000
	// FileName is the name of the file in a mirror's directory.
	FileName = "fleet.json"
	// DefaultInterval is the default of Settings.Interval.
	DefaultInterval = 2 * time.Second

	// format is the version of the file.
	format = 1
	// maxFile bounds what is read of the file, in bytes.
	maxFile = 4 << 10
)

// Settings say where the number of replicas comes from. Zero values mean the defaults.
type Settings struct {
	Replicas int           // as configured; 0: unknown
	File     string        // that says it, and goes before Replicas; "": there is none
	Interval time.Duration // between two looks at File
	Logger   *slog.Logger  // default: none
}

// Fleet is the replicas that share the clusters' calls. It is safe for concurrent use.
type Fleet struct {
	settings Settings
	size     atomic.Int64

	// What follows belongs to the goroutine of Run.
	read    bool   // the file has been
	problem string // of the file, as of the last look
}

// Change is a new Size.
type Change struct {
	Size int
	// Joined is set when replicas have come since the Size was read before. The first
	// reading only says how many have been there all along.
	Joined bool
}

// New returns a Fleet, having read the file once. A file that cannot be read, or says
// what cannot be, is logged and leaves the Size as it was.
func New(s Settings) *Fleet {
	if s.Interval <= 0 {
		s.Interval = DefaultInterval
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{settings: s}
	f.size.Store(int64(min(max(s.Replicas, 1), MaxReplicas)))
	f.look()
	return f
}

// Size returns how many replicas there are, this one included: 1 to MaxReplicas, and 1
// where nobody knows. It reads memory only.
func (f *Fleet) Size() int { return int(f.size.Load()) }

// Run follows the file until ctx is done, and reports each new Size to changed.
func (f *Fleet) Run(ctx context.Context, changed func(Change)) {
	if f.settings.File == "" {
		return
	}
	ticker := time.NewTicker(f.settings.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if c, ok := f.look(); ok {
			f.settings.Logger.Info("number of replicas changed", "replicas", c.Size)
			changed(c)
		}
	}
}

// look reads the file, and returns the Size if it is another one.
func (f *Fleet) look() (c Change, changed bool) {
	if f.settings.File == "" {
		return Change{}, false
	}
	size, err := readSize(f.settings.File)
	if err != nil {
		f.complain(err)
		return Change{}, false
	}
	f.problem = ""
	before, first := f.Size(), !f.read
	f.size.Store(int64(size))
	f.read = true
	return Change{Size: size, Joined: !first && size > before}, size != before
}

// complain logs why the file says nothing, once for each reason.
func (f *Fleet) complain(err error) {
	if f.problem == err.Error() {
		return
	}
	f.problem = err.Error()
	f.settings.Logger.Warn("number of replicas is not known from the file", "file", f.settings.File, "reason", f.problem, "replicas", f.Size())
}

// content is what the file says.
type content struct {
	Format   int `json:"format"`
	Replicas int `json:"replicas"`
}

// Encode returns the file that says that there are so many replicas, between 1 and
// MaxReplicas. The bytes are the caller's.
func Encode(replicas int) []byte {
	text, err := json.Marshal(content{format, min(max(replicas, 1), MaxReplicas)})
	if err != nil { // it is two numbers
		panic(err)
	}
	return append(text, '\n')
}

// readSize reads the file. It waits for nobody, as it would for who writes into a pipe.
func readSize(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, reason(err)
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, reason(err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return 0, reason(err)
	}
	return parse(text)
}

// parse returns the number in the text of a file, if it can be one.
func parse(text []byte) (int, error) {
	var c content
	switch err := json.Unmarshal(text, &c); {
	case len(text) > maxFile:
		return 0, fmt.Errorf("has more than %d bytes", maxFile)
	case err != nil:
		return 0, fmt.Errorf("is not the JSON of a fleet: %w", err)
	case c.Format != format:
		return 0, fmt.Errorf("has format %d, and this version reads format %d", c.Format, format)
	case c.Replicas < 1 || c.Replicas > MaxReplicas:
		return 0, fmt.Errorf("says %d replicas: must be 1 to %d", c.Replicas, MaxReplicas)
	}
	return c.Replicas, nil
}

// reason drops the path of an error, which the log has.
func reason(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// Share returns one replica's part of a limit of the whole fleet: slack even parts,
// rounded up; at least least, and never more than the limit.
func Share(limit, size, slack, least int) int {
	even := (limit*slack + size - 1) / size
	return min(limit, max(even, least))
}
