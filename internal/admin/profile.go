// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"net/http/pprof"
	"net/url"
)

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
