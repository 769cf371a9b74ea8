// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Change is one change of what is served, or of what is refused.
type Change struct {
	// Snapshot is what is served from now on; nil if the change was refused. It
	// must not be kept: Snapshots go when no admission uses them any more.
	Snapshot *Snapshot
	// Problems are why the change was refused.
	Problems []manifest.Problem
}

// changed tells whoever wants to know.
func (r *Registry) changed(c Change) {
	if r.settings.Changed != nil {
		r.settings.Changed(c)
	}
}
