// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"slices"
)

// Story is s as a webhook section of the dispatcher's stories, for a webhook of
// that review version.
func (s Script) Story(version string) []byte {
	if slices.Contains([]Form{Status400, Status404, Status500, Status503, Status201, Status204, NoLocation, Redirect}, s.Form) {
		return fmt.Appendf(nil, "error HTTPStatus %s", s.Form)
	}
	switch s.Form {
	case Close:
		return []byte("error Unreachable the connection was closed")
	case Hang:
		return []byte("after 1h")
	case FiveMegabytes, GZIP, EmptyBody:
		return fmt.Appendf(nil, "error BadAnswer %s", s.Form)
	}
	return append([]byte("raw "), s.body(call{apiVersion: "admission.k8s.io/" + version, uid: "$UID"})...)
}
