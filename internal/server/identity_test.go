// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

func TestIdentity(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.TLS.ClientAuth = tls.VerifyClientCertIfGiven })
	anyone := &tls.Config{RootCAs: w.ca.Pool()}
	a, b, stranger := pki.Subject{CommonName: "a"}, pki.Subject{DNSNames: []string{"b.example.com"}}, pki.Subject{CommonName: "x"}
	const bearer, wrong = "Authorization: Bearer " + token + "\r\n", "Authorization: Bearer wrong\r\n"
	for _, tt := range []struct {
		name, cluster, extra string
		subject              *pki.Subject
		served               bool
	}{
		{"certificate by common name", "a", "", &a, true},
		{"certificate by DNS name", "b", "", &b, true},
		{"certificate by URI", "a", "", &pki.Subject{URIs: []string{"spiffe://example.com/a"}}, true},
		{"token", "token", bearer, nil, true},
		{"token, scheme in other case", "token", "Authorization: bearer " + token + "\r\n", nil, true},
		{"nothing, where anybody is welcome", "open", "", nil, true},
		{"A5 certificate of a on the path of b", "b", "", &a, false},
		{"A5 unknown cluster", "nowhere", "", &a, false},
		{"A5 certificate of nobody", "a", "", &stranger, false},
		{"A5 nothing", "a", "", nil, false},
		{"A5 token on another path", "a", bearer, nil, false},
		{"A5 wrong token", "token", wrong, nil, false},
		{"A5 other scheme", "token", "Authorization: Basic " + token + "\r\n", nil, false},
		{"A5 empty token", "token", "Authorization: Bearer \r\n", nil, false},
		{"A5 two tokens", "token", bearer + bearer, nil, false},
		{"A5 certificate and token of different clusters", "a", bearer, &a, false},
		{"A5 certificate and token of different clusters, other path", "token", bearer, &a, false},
		{"A5 certificate and wrong token", "a", wrong, &a, false},
		{"A5 certificate of nobody and token", "token", bearer, &stranger, false},
		{"A5 certificate of another where anybody is welcome", "open", "", &a, false},
		{"A5 wrong token where anybody is welcome", "open", wrong, nil, false},
		{"A18 headers that name another cluster", "b", "X-Cluster: b\r\nAdmission-Cluster: b\r\nX-Forwarded-Host: b\r\n", &a, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := anyone
			if tt.subject != nil {
				cfg = w.clientTLS(*tt.subject)
			}
			c := w.dialTLS(cfg)
			got := c.ask(message{target: "/v1/clusters/" + tt.cluster + "/validate", extra: tt.extra, body: review("1")})
			if tt.served {
				c.isAllowed(got, "1")
				return
			}
			c.refusedWith(got, http.StatusForbidden)
			if want := "the credentials are not those of this cluster\n"; got.body != want {
				t.Errorf("body %q, want %q", got.body, want)
			}
		})
	}
}

func TestHostAndServerNameAreIgnored(t *testing.T) {
	w := newWorld(t, nil)
	t.Run("A18 Host and SNI naming another cluster", func(t *testing.T) {
		cfg := w.clientTLS(pki.Subject{CommonName: "a"})
		cfg.ServerName, cfg.InsecureSkipVerify = "b.example.com", true
		c := w.dialTLS(cfg)
		c.send(text(strings.Replace(good("1").String(), "Host: dispatcher", "Host: b.example.com\r\nX-Cluster: b", 1)))
		c.isAllowed(c.answer(), "1")
		if got := w.judge.last(t).cluster; got != "a" {
			t.Errorf("decided for cluster %q", got)
		}
	})
}
