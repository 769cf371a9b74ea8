// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

// anyCaller lets connections without a certificate in.
func anyCaller(cfg *server.Config) { cfg.TLS.ClientAuth = tls.VerifyClientCertIfGiven }

func TestPathSecret(t *testing.T) {
	w := newWorld(t, anyCaller)
	own, wardle, a := pki.Subject{CommonName: "secret"}, pki.Subject{CommonName: "wardle"}, pki.Subject{CommonName: "a"}
	const bearer = "Authorization: Bearer " + token + "\r\n"
	wrong := strings.Repeat("0", len(pathSecret))
	for _, tt := range []struct {
		name, path, extra string
		subject           *pki.Subject
		status            int
	}{
		{"A23 the secret in use", "secret/" + pathSecret + "/validate", "", nil, 200},
		{"A23 the next secret", "secret/" + nextSecret + "/mutate", "", nil, 200},
		{"A23 with a list of webhooks", "secret/" + pathSecret + "/validate/not.0123456789", "", nil, 200},
		{"A23 beside the cluster's certificate", "secret/" + pathSecret + "/validate", "", &own, 200},
		{"A23 beside the certificate of a caller, whose groups count", "secret/" + pathSecret + "/validate", "", &wardle, 403},
		{"A23 any number of such clusters", "other/" + otherSecret + "/validate", "", nil, 200},

		{"A23 wrong secret", "secret/" + wrong + "/validate", "", nil, 403},
		{"A23 wrong secret of a cluster that is none", "nowhere/" + wrong + "/validate", "", nil, 403},
		{"A23 no secret", "secret/validate", "", nil, 403},
		{"A23 no secret, of a cluster that is none", "nowhere/validate", "", nil, 403},
		{"A23 the secret of another cluster", "secret/" + otherSecret + "/validate", "", nil, 403},
		{"A23 the secret on another path", "other/" + pathSecret + "/validate", "", nil, 403},
		{"A23 the secret where anybody is welcome", "open/" + pathSecret + "/validate", "", nil, 403},
		{"A23 wrong secret where anybody is welcome", "open/" + wrong + "/validate", "", nil, 403},
		{"A23 certificate of another cluster", "secret/" + pathSecret + "/validate", "", &a, 403},
		{"A23 certificate of another cluster, its path", "a/" + pathSecret + "/validate", "", &a, 403},
		{"A23 certificate and wrong secret", "secret/" + wrong + "/validate", "", &own, 403},
		{"A23 token of another cluster", "secret/" + pathSecret + "/validate", bearer, nil, 403},
		{"A23 the secret as a token", "secret/validate", "Authorization: Bearer " + pathSecret + "\r\n", nil, 403},
		{"A23 the secret in headers", "secret/validate", "X-Original-URL: /v1/clusters/secret/" + pathSecret + "/validate\r\nReferer: https://d/v1/clusters/secret/" + pathSecret + "/validate\r\n", nil, 403},
		{"A23 the secret in the query", "secret/validate?" + pathSecret, "", nil, 403},

		{"A23 in capitals", "secret/" + strings.ToUpper(pathSecret) + "/validate", "", nil, 404},
		{"A23 encoded", "secret/%35" + pathSecret[1:] + "/validate", "", nil, 404},
		{"A23 encoded slashes", "secret%2f" + pathSecret + "%2Fvalidate", "", nil, 404},
		{"A23 double slash before", "secret//" + pathSecret + "/validate", "", nil, 404},
		{"A23 double slash behind", "secret/" + pathSecret + "//validate", "", nil, 404},
		{"A23 slash at the end", "secret/" + pathSecret + "/validate/", "", nil, 404},
		{"A23 without a phase", "secret/" + pathSecret, "", nil, 404},
		{"A23 behind the phase", "secret/validate/" + pathSecret, "", nil, 404},
		{"A23 twice", "secret/" + pathSecret + "/" + pathSecret + "/validate", "", nil, 404},
		{"A23 dots", "secret/" + pathSecret + "/../" + pathSecret + "/validate", "", nil, 404},
		{"A23 shorter than any", "secret/" + pathSecret[:31] + "/validate", "", nil, 404},
		{"A23 longer than any", "secret/" + strings.Repeat("z", 129) + "/validate", "", nil, 404},
		{"A23 what looks like a sum", "secret/" + strings.Repeat("0", 64) + "/validate", "", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := &tls.Config{RootCAs: w.ca.Pool()}
			if tt.subject != nil {
				cfg = w.clientTLS(*tt.subject)
			}
			c := w.dialTLS(cfg)
			got := c.ask(message{target: "/v1/clusters/" + tt.path, extra: tt.extra, body: review("1")})
			if tt.status == http.StatusOK {
				c.isAllowed(got, "1")
				return
			}
			c.refusedWith(got, tt.status)
			for _, secret := range []string{pathSecret, nextSecret, otherSecret} {
				if strings.Contains(got.body, secret) || strings.Contains(strings.ToLower(got.body), secret[1:]) {
					t.Errorf("the answer shows the secret: %q", got.body)
				}
			}
		})
	}
	t.Run("A23 no record shows a secret", func(t *testing.T) {
		log := strings.ToLower(strings.Join(w.logs.lines(), "\n"))
		for _, secret := range []string{pathSecret, nextSecret, otherSecret} {
			if strings.Contains(log, secret[1:31]) {
				t.Errorf("the log has %s:\n%s", secret, log)
			}
		}
		if want := `"path":"/v1/clusters/other/***/validate"`; !strings.Contains(log, want) {
			t.Errorf("no %s in\n%s", want, log)
		}
	})
}

// TestUnknownClustersLookAlike compares all that a caller sees of a wrong secret for a
// cluster that there is with what it sees where there is none.
func TestUnknownClustersLookAlike(t *testing.T) {
	w := newWorld(t, anyCaller)
	ask := func(path string) string {
		c := w.dialTLS(&tls.Config{RootCAs: w.ca.Pool()})
		got := c.ask(message{target: "/v1/clusters/" + path + "/validate", body: review("1")})
		c.refusedWith(got, http.StatusForbidden)
		return fmt.Sprint(got.status, got.header, got.body)
	}
	wrong := strings.Repeat("0", len(pathSecret))
	want := ask("nowhere")
	for _, path := range []string{"nowhere/" + wrong, "secret", "secret/" + wrong, "secret/" + otherSecret, "other/" + pathSecret, "far", "far/" + wrong, "nowhere/" + pathSecret} {
		if got := ask(path); got != want {
			t.Errorf("A23 of %s: %q, of a cluster that is none: %q", path, got, want)
		}
	}
}

func TestSourceRanges(t *testing.T) {
	w := newWorld(t, anyCaller)
	t.Run("A24 credentials of a cluster that calls from elsewhere", func(t *testing.T) {
		c := w.dialAs(pki.Subject{CommonName: "far"})
		got := c.ask(message{target: "/v1/clusters/far/validate", extra: "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n", body: review("1")})
		c.refusedWith(got, http.StatusForbidden)
		if want := "the credentials are not those of this cluster\n"; got.body != want {
			t.Errorf("body %q, want %q: nobody is told that the credentials are good", got.body, want)
		}
		if n := w.turned.counts()["far other_source"]; n != 1 {
			t.Errorf("counted %v", w.turned.counts())
		}
		if log := strings.Join(w.logs.lines(), "\n"); !strings.Contains(log, "in none of the sourceRanges of the cluster") {
			t.Errorf("the log:\n%s", log)
		}
		w.judge.none(t)
	})
	t.Run("A24 from one of the ranges", func(t *testing.T) {
		c := w.dialTLS(&tls.Config{RootCAs: w.ca.Pool()})
		c.isAllowed(c.ask(message{target: "/v1/clusters/secret/" + pathSecret + "/validate", body: review("1")}), "1")
	})
}

// Connections from elsewhere than a cluster's sourceRanges take none of its slots: neither
// of two makes way for the other, as connections of the cluster would.
func TestConnectionsFromElsewhere(t *testing.T) {
	w := newWorld(t, func(cfg *server.Config) { cfg.Connections = 2 })
	cfg := w.clientTLS(pki.Subject{CommonName: "far"})
	first, second := w.dialTLS(cfg), w.dialTLS(cfg)
	for _, c := range []*caller{second, first} {
		c.refusedWith(c.ask(message{target: "/v1/clusters/far/validate", body: review("1")}), http.StatusForbidden)
	}
	if n := w.turned.counts()["far too_many_connections"]; n > 0 {
		t.Errorf("A24 %d connections were closed as the cluster's", n)
	}
}
