// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"strings"
)

// admit lets callers through to next that may see what they ask for.
func (c *Config) admit(next http.Handler) http.Handler {
	if !c.CertificateRequired {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := r.URL.Path == "/livez" || r.URL.Path == "/readyz" || c.OpenMetrics && r.URL.Path == "/metrics"
		verified := r.TLS != nil && len(r.TLS.VerifiedChains) > 0
		if !open && !verified {
			say(w, http.StatusForbidden, "a client certificate of admin.tls.clientCAFile is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unrebound keeps sites out that have their own name point at this host: who calls
// over loopback says so.
func unrebound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isRebound(r) {
			http.Error(w, "this listener is on loopback: call it localhost, or by its address", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isRebound reports whether a request came over loopback for a host that has a
// name: a browser sends one where a stranger's site let its name point here, to
// read with the rights of whoever sits before it.
func isRebound(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	local, err := netip.ParseAddrPort(at.String())
	if err != nil || !local.Addr().Unmap().IsLoopback() || r.TLS != nil {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}

// profile serves what go tool pprof asks for. A profile of n seconds may take
// that much longer than other answers: net/http/pprof sees to that. Browsers get
// it for no other site: a page must not be able to start profiles.
func profile(mux *http.ServeMux) {
	mux.Handle("GET /debug/pprof/", ownSite(http.HandlerFunc(pprof.Index)))
	mux.Handle("GET /debug/pprof/cmdline", ownSite(http.HandlerFunc(pprof.Cmdline)))
	mux.Handle("GET /debug/pprof/profile", ownSite(http.HandlerFunc(pprof.Profile)))
	mux.Handle("GET /debug/pprof/trace", ownSite(http.HandlerFunc(pprof.Trace)))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.Handle(method+" /debug/pprof/symbol", ownSite(http.HandlerFunc(pprof.Symbol)))
	}
}

// ownSite lets requests of our own pages through, and those of no page.
func ownSite(next http.Handler) http.Handler {
	return unrebound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isCrossSite(r) {
			http.Error(w, "profiles are not for other sites", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// isCrossSite reports whether a browser says that a page of another origin sends r.
// Browsers that do not know Sec-Fetch-Site send Origin, except with a GET without
// CORS: those say of what page they are in Referer.
func isCrossSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin" && site != "none"
	}
	for _, from := range []string{r.Header.Get("Origin"), r.Header.Get("Referer")} {
		if from == "" {
			continue
		}
		if page, err := url.Parse(from); err != nil || page.Host != r.Host {
			return true
		}
	}
	return false
}
