// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

func FuzzParseRoute(f *testing.F) {
	for _, path := range []string{"/v1/clusters/a/validate", "/v1/clusters/a.b-1/mutate", "/v1/clusters/a/../b/validate", "/v1/clusters/%61/mutate"} {
		f.Add([]byte(path))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		r, ok := parseRoute(path)
		if ok && "/v1/clusters/"+string(r.cluster)+"/"+r.phase.String() != string(path) {
			t.Errorf("%q is routed to %q, %v: a second spelling", path, r.cluster, r.phase)
		}
	})
}
