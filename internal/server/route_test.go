// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

func FuzzParseRoute(f *testing.F) {
	for _, path := range []string{"/v1/clusters/a/validate", "/v1/clusters/a.b-1/mutate", "/v1/clusters/a/../b/validate", "/v1/clusters/%61/mutate",
		"/v1/clusters/a/validate/", "/v1/clusters/a/validate/only.0123456789", "/v1/clusters/a/mutate/not.0123456789.abcdefghij",
		"/v1/clusters/a/mutate/not.abcdefghij.0123456789", "/v1/clusters/a/mutate/only.0123456789/", "/v1/clusters/a/mutate/only.", "/v1/clusters/a/mutate/only"} {
		f.Add([]byte(path))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		r, ok := parseRoute(path)
		spelled := "/v1/clusters/" + string(r.cluster) + "/" + r.phase.String()
		if len(r.segment) > 0 {
			spelled += "/" + string(r.segment)
		}
		if ok && spelled != string(path) {
			t.Errorf("%q is routed to %q, %v: a second spelling", path, r.cluster, r.phase)
		}
	})
}
