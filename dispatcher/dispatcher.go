// SPDX-License-Identifier: Apache-2.0

// Package dispatcher makes the decision: one Review in, one Verdict out.
package dispatcher

import (
	"context"
	"log/slog"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Caller calls one webhook; *webhook.Client does.
type Caller interface {
	Call(ctx context.Context, call webhook.Call) (codec.Response, error)
}

// Config is the configuration of a Dispatcher. Zero values mean the defaults.
type Config struct {
	Caller Caller        // required
	Grace  time.Duration // how long others may still answer after the first denial; 100 ms
	Logger *slog.Logger  // required
}

// Dispatcher decides admissions. It is safe for concurrent use.
type Dispatcher struct{}

// New returns a Dispatcher.
func New(cfg Config) *Dispatcher { panic("stub") }

// Request is one admission to decide.
type Request struct {
	Review   *codec.Review // borrowed until Dispatch returns
	Cluster  *registry.Cluster
	Phase    registry.Phase
	Snapshot string    // hash of the Snapshot that Cluster is from
	Deadline time.Time // when the Verdict must be there
}

// Verdict is the merged answer for the caller.
type Verdict struct {
	Response codec.Response
}

// Dispatch decides one admission. It returns before req.Deadline, whatever the
// webhooks do.
func (d *Dispatcher) Dispatch(ctx context.Context, req Request) Verdict { panic("stub") }

// Wait returns when no call runs any more: after Dispatch has returned, calls
// whose answer nobody needs (late ones, Shadow) run to their deadline.
func (d *Dispatcher) Wait() { panic("stub") }
