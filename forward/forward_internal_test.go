// SPDX-License-Identifier: Apache-2.0

package forward

// Refresh looks at the files now.
func (f *Forwarder) Refresh() { f.files.refresh() }
