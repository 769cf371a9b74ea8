// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// hidden stands for a part of a path that is not recorded.
const hidden = "***"

// printedPath returns what of the beginning of a path is recorded. A path secret never is,
// wherever in the path somebody put it, and whether it is one of a Cluster or not: no part
// is recorded that is as long as one, but for the list of webhooks at its end. Of what
// follows the name of a cluster only what the dispatcher prints is recorded, so that half a
// secret is none either.
func printedPath(path []byte) string {
	parts := strings.Split(string(path[:min(len(path), maxQuoted)]), "/")
	ours := len(parts) > 3 && parts[1] == "v1" && parts[2] == "clusters"
	for i, part := range parts {
		switch {
		case ours && i > 3 && !isPrinted(part), len(part) >= chain.MinPathSecret && !chain.IsPathSegment([]byte(part)):
			parts[i] = hidden
		}
	}
	return strings.Join(parts, "/")
}

// isPrinted reports whether a part of a path behind the name of a cluster is one that
// registrations have, the secret apart.
func isPrinted(part string) bool {
	return part == "" || part == chain.Validating.String() || part == chain.Mutating.String() || chain.IsPathSegment([]byte(part))
}
