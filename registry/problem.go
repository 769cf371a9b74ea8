// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration: what, where, and
// why. The command line, the log and the status page render the same values.
type Problem struct {
	File   string `json:"file,omitempty"`   // relative to the source directory
	Object string `json:"object,omitempty"` // Kind/name
	Field  string `json:"field,omitempty"`  // field path as Kubernetes writes it
	Value  string `json:"value,omitempty"`  // the offending value, cut short; never a secret
	Reason string `json:"reason"`
}

// String returns the problem as one line.
func (p Problem) String() string {
	var b strings.Builder
	for _, part := range []string{p.File, p.Object, p.Field} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	if p.Value != "" {
		fmt.Fprintf(&b, "%q: ", p.Value)
	}
	b.WriteString(p.Reason)
	return b.String()
}
