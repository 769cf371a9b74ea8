// SPDX-License-Identifier: Apache-2.0

// Package registry turns Configurations into immutable Snapshots: it reads
// directories, reports every problem, and swaps the compiled whole atomically.
package registry

import (
	"context"
	"log/slog"
	"time"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Settings is the configuration of a Registry.
type Settings struct {
	Directories []string
	Interval    time.Duration // between two looks at the directories; 2 s
	AllowEmpty  bool          // an empty configuration may replace another (E12)
	Addresses   webhook.AddressPolicy
	Bypass      []match.RequestRule // for every cluster, before the cluster's own
	FailOpen    []match.RequestRule
	MaxTimeout  time.Duration // longest time an admission may take; 30 s
	Logger      *slog.Logger
}

// Registry holds the current Snapshot. It is safe for concurrent use.
type Registry struct{}

// New returns a Registry without a Snapshot. It reads nothing yet.
func New(s Settings) *Registry { panic("stub") }

// Load reads and compiles the sources once, swaps the Snapshot if there is no
// problem and something changed, and returns the problems.
func (r *Registry) Load() []Problem { panic("stub") }

// Snapshot returns the current Snapshot, or nil before the first good Load.
func (r *Registry) Snapshot() *Snapshot { panic("stub") }

// Problems returns the problems of the last Load; the current Snapshot is then
// older than the sources.
func (r *Registry) Problems() []Problem { panic("stub") }

// Targets returns the Targets of the current Snapshot.
func (r *Registry) Targets() []*webhook.Target { panic("stub") }

// Run loads at every interval and on Reload until ctx is done.
func (r *Registry) Run(ctx context.Context) { panic("stub") }

// Reload makes Run load now.
func (r *Registry) Reload() { panic("stub") }

// Validate compiles what is in paths (files or directories) as Load would and
// returns every problem and lint warning.
func Validate(s Settings, paths []string) (problems, warnings []Problem) { panic("stub") }
