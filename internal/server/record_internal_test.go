// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// told is an Observer that remembers.
type told []string

func (o *told) TurnedAway(cluster, reason string) { *o = append(*o, cluster+" "+reason) }

func newRecords(log io.Writer, observer Observer) *records {
	return &records{observer: observer, log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))}
}

// What is turned away before it is an admission has one line that says whose it was,
// and is counted for whose it was.
func TestWhatRecordsSay(t *testing.T) {
	var log bytes.Buffer
	var observer told
	r := newRecords(&log, &observer)
	remote := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	r.refused([]slog.Attr{slog.String("remote", "x")}, nil, notPost, "text")
	r.refused([]slog.Attr{slog.String("remote", "x")}, &chain.Cluster{Name: "a"}, forbidden, "text")
	r.handshakeFailed(remote, fmt.Errorf("handshake: %w", io.EOF)) // a health check
	r.handshakeFailed(remote, net.ErrClosed)                       // evicted, which has a record
	r.handshakeFailed(remote, tls.AlertError(48))
	r.connectionClosed("", remote, tooManyOpen, 7)
	r.connectionClosed("a", remote, tooManyHeads, 8)
	want := `level=WARN msg="request refused" remote=x status=405 reason=text remedy="apply what dispatcher registration prints for the cluster: the URL is not one of its"
level=WARN msg="request refused" remote=x cluster=a status=403 reason=text remedy="compare the certificate or token of the caller with spec.authentication of its Cluster; dispatcher registration --caller prints what kube-apiserver needs"
level=WARN msg="TLS handshake failed" remote=127.0.0.1:1 error="tls: unknown certificate authority" remedy="the client certificate is not of an authority in tls.clientCAFile, or in caFile of its Cluster"
level=WARN msg="connection closed: too many are open" remote=127.0.0.1:1 limit=7
level=WARN msg="connection closed: too many are amid the head of a request" remote=127.0.0.1:1 limit=8 cluster=a
`
	if log.String() != want {
		t.Errorf("got\n%s\nwant\n%s", log.String(), want)
	}
	if got, want := strings.Join(observer, ", "), " not_post, a forbidden,  handshake,  too_many_connections, a too_many_connections"; got != want {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// A flood of one kind has a few lines, and the next line after it says how many are
// missing. It leaves the lines of others alone.
func TestRecordsAreThrottledByKindAndCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRecords(&log, unobserved{})
		remote := &net.TCPAddr{}
		kinds := map[string]func(){
			"stranger's connections": func() { r.connectionClosed("", remote, tooManyOpen, 1) },
			"connections of a":       func() { r.connectionClosed("a", remote, tooManyOpen, 1) },
			"connections of b":       func() { r.connectionClosed("b", remote, tooManyOpen, 1) },
			"handshakes":             func() { r.handshakeFailed(remote, errors.New("no")) },
			"refusals of a":          func() { r.refused(nil, &chain.Cluster{Name: "a"}, notPost, "") },
			"refusals of strangers":  func() { r.refused(nil, nil, notPost, "") },
		}
		for kind, record := range kinds {
			log.Reset()
			for range throttle.Burst + 3 {
				record()
			}
			if n := strings.Count(log.String(), "\n"); n != throttle.Burst || strings.Contains(log.String(), "dropped") {
				t.Errorf("%s: %d lines: %s", kind, n, log.String())
			}
		}
		<-time.After(throttle.Window)
		for kind, record := range kinds {
			log.Reset()
			if record(); strings.Count(log.String(), "dropped=3") != 1 {
				t.Errorf("%s: %s", kind, log.String())
			}
		}
	})
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		" a~\x1f\x7f\x00é":               " a~?????",
		strings.Repeat("x", maxQuoted+1): strings.Repeat("x", maxQuoted),
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}

// What a handshake failed of tells what to do, as far as the text of the error goes.
func TestHandshakeRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"tls: client didn't provide a certificate":                             "tls.clientAuth: IfGiven",
		"remote error: tls: bad certificate":                                   "does not trust the serving certificate",
		"remote error: tls: unknown certificate authority":                     "does not trust the serving certificate",
		"remote error: tls: internal error":                                    "look at the caller's log",
		"tls: first record does not look like a TLS handshake":                 "plain HTTP",
		"tls: failed to verify certificate: x509: certificate has expired":     "renew",
		"tls: failed to verify certificate: x509: signed by unknown authority": "tls.clientCAFile",
		"read tcp: i/o timeout":                                                "network",
		"something else":                                                       "",
	} {
		if got := handshakeRemedy(errors.New(text)); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", text, got)
		}
	}
}
