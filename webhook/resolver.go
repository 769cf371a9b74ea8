// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"time"
)

// ResolverConfig is the configuration of a Resolver. Zero values mean the defaults.
type ResolverConfig struct {
	// Targets returns the Targets to keep current.
	Targets   func() []*Target
	Addresses AddressPolicy
	Interval  time.Duration // between two resolutions of one name; 10 s
	Timeout   time.Duration // of one lookup; 5 s
	Server    string        // host:port of a DNS server; empty: the system's
}

// Resolver keeps the Endpoints of Targets current: names are looked up in the
// background, never on the request path, and the last good addresses are kept.
type Resolver struct{}

// NewResolver returns a Resolver. It does nothing until Run or Refresh.
func NewResolver(cfg ResolverConfig) *Resolver { panic("stub") }

// Run resolves until ctx is done.
func (r *Resolver) Run(ctx context.Context) { panic("stub") }

// Refresh resolves every Target that has no Endpoints yet and returns when each
// has been tried or ctx is done.
func (r *Resolver) Refresh(ctx context.Context) { panic("stub") }
