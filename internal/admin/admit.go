// SPDX-License-Identifier: Apache-2.0

package admin

import "net/http"

// admit lets callers through to next that may see what they ask for.
func (c *Config) admit(next http.Handler) http.Handler {
	if !c.CertificateRequired {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probe := r.URL.Path == "/livez" || r.URL.Path == "/readyz"
		verified := r.TLS != nil && len(r.TLS.VerifiedChains) > 0
		if !probe && !verified {
			say(w, http.StatusForbidden, "a client certificate of admin.tls.clientCAFile is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}
