// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"net/http/pprof"
)

// profile serves what go tool pprof asks for. A profile of n seconds may take
// that much longer than other answers: net/http/pprof sees to that.
func profile(mux *http.ServeMux) {
	mux.Handle("GET /debug/pprof/", unrebound(http.HandlerFunc(pprof.Index)))
	mux.Handle("GET /debug/pprof/cmdline", unrebound(http.HandlerFunc(pprof.Cmdline)))
	mux.Handle("GET /debug/pprof/profile", unrebound(http.HandlerFunc(pprof.Profile)))
	mux.Handle("GET /debug/pprof/trace", unrebound(http.HandlerFunc(pprof.Trace)))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.Handle(method+" /debug/pprof/symbol", unrebound(http.HandlerFunc(pprof.Symbol)))
	}
}
