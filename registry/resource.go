// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Unconnected is a Target as a Resource that nobody connects, and that is ready at
// once. Whoever has a client embeds it, and opens and asks the Target.
type Unconnected struct{ *transport.Target }

// Identity implements chain.Resource.
func (u Unconnected) Identity() string { return identityOf(u.Target) }

func identityOf(t *transport.Target) string {
	id := t.Identity()
	return string(id[:])
}

// Open does nothing.
func (Unconnected) Open(context.Context) {}

// Ready returns nil.
func (Unconnected) Ready(*chain.DryRun) error { return nil }

// Busy reports whether calls are under way.
func (u Unconnected) Busy() bool { return u.Outstanding() > 0 }

// String returns the URL.
func (u Unconnected) String() string { return u.URL() }
