// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"regexp"
	"testing"
)

// longRun finds what could be a path secret.
var longRun = regexp.MustCompile(`[0-9a-z]{32}`)

func FuzzParseRoute(f *testing.F) {
	for _, path := range []string{"/v1/clusters/a/validate", "/v1/clusters/a.b-1/mutate", "/v1/clusters/a/../b/validate", "/v1/clusters/%61/mutate",
		"/v1/clusters/a/validate/", "/v1/clusters/a/validate/only.0123456789", "/v1/clusters/a/mutate/not.0123456789.abcdefghij",
		"/v1/clusters/a/mutate/not.abcdefghij.0123456789", "/v1/clusters/a/mutate/only.0123456789/", "/v1/clusters/a/mutate/only.", "/v1/clusters/a/mutate/only",
		"/v1/clusters/a/0123456789abcdef0123456789abcdef/validate", "/v1/clusters/a/0123456789abcdef0123456789abcdef/mutate/only.0123456789",
		"/v1/clusters/a/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef/mutate", "/v1/clusters/a//validate",
		"/v1/clusters/a/0123456789ABCDEF0123456789ABCDEF/validate", "/v1/clusters/0123456789abcdef0123456789abcdef/validate",
		"/v1/clusters/a%2f0123456789abcdef0123456789abcdef%2fvalidate", "//v1/clusters/a/0123456789abcdef0123456789abcdef/validate"} {
		f.Add([]byte(path))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		r, ok := parseRoute(path)
		spelled := "/v1/clusters/" + string(r.cluster) + "/"
		if len(r.secret) > 0 {
			spelled += string(r.secret) + "/"
		}
		spelled += r.phase.String()
		if len(r.segment) > 0 {
			spelled += "/" + string(r.segment)
		}
		if ok && spelled != string(path) {
			t.Errorf("%q is routed to %q, %v: a second spelling", path, r.cluster, r.phase)
		}
		if len(r.secret) > 0 && (len(r.secret) < 32 || bytes.ContainsFunc(r.secret, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'z') })) {
			t.Errorf("%q is a secret", r.secret)
		}
		if shown := printedPath(path); longRun.MatchString(shown) {
			t.Errorf("of %q is recorded %q", path, shown)
		}
	})
}
