// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"net/http/pprof"
)

// profile serves what go tool pprof asks for. A profile of n seconds may take
// that much longer than other answers: net/http/pprof sees to that.
func profile(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", guard(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/cmdline", guard(pprof.Cmdline))
	mux.HandleFunc("GET /debug/pprof/profile", guard(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/trace", guard(pprof.Trace))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.HandleFunc(method+" /debug/pprof/symbol", guard(pprof.Symbol))
	}
}

// guard keeps strangers' sites out, as the status page does.
func guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if isRebound(r) {
			say(w, http.StatusMisdirectedRequest, wrongHost)
			return
		}
		next(w, r)
	}
}
