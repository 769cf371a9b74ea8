// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

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
