// SPDX-License-Identifier: Apache-2.0

package trust_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// BenchmarkHandshake measures TLS handshakes, both sides, with a client whose
// authority is the last of many: as crypto/tls verifies it, as the Verifier does
// for a client that it knows, and for a stranger that claims to be of one of the
// authorities.
func BenchmarkHandshake(b *testing.B) {
	server := issue(b, spec{name: "dispatcher", dns: []string{"dispatcher"}, key: keys()[3]}, nil)
	for _, n := range []int{1, 50, 500, 3000} {
		for name, names := range map[string]func(int) string{"equal": equalNames, "distinct": distinctNames} {
			for id, p := range map[string]pointer{"AKI": right, "noAKI": none} {
				authorities, client := fleet(b, n, names, p)
				forged := issue(b, spec{name: "east", key: keys()[0], pointer: p}, &entity{certificate: authorities[n-1], key: keys()[5]})
				label := fmt.Sprintf("%d/%s/%s/", n, name, id)
				plain := &tls.Config{
					Certificates: []tls.Certificate{pair(server)}, ClientAuth: tls.RequireAndVerifyClientCert,
					ClientCAs: x509.NewCertPool(), SessionTicketsDisabled: true,
				}
				for _, c := range authorities {
					plain.ClientCAs.AddCert(c)
				}
				b.Run(label+"standard", func(b *testing.B) { handshakes(b, plain, client, true) })
				v, set := trust.NewVerifier(), trust.NewAuthorities(authorities)
				ours := &tls.Config{
					Certificates: []tls.Certificate{pair(server)}, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
					VerifyConnection: func(state tls.ConnectionState) error {
						_, err := v.Verify(state.PeerCertificates, trust.Sets{Process: set})
						return err
					},
				}
				b.Run(label+"verifier", func(b *testing.B) { handshakes(b, ours, client, true) })
				b.Run(label+"stranger", func(b *testing.B) { handshakes(b, ours, forged, false) })
			}
		}
	}
}

func pair(e *entity) tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{e.certificate.Raw}, PrivateKey: e.key, Leaf: e.certificate}
}

// handshakes reports the CPU time of a handshake, or skips where none succeeds.
func handshakes(b *testing.B, server *tls.Config, client *entity, good bool) {
	certificate := pair(client)
	dial := &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &certificate, nil
	}}
	handshake := func() error {
		near, far := net.Pipe()
		defer func() { _ = near.Close() }()
		served := make(chan error, 1)
		go func() {
			served <- tls.Server(far, server).Handshake()
			_ = far.Close()
		}()
		c := tls.Client(near, dial)
		if err := c.Handshake(); err == nil {
			_, _ = c.Read(make([]byte, 1)) // what the server says of the certificate
		}
		return <-served
	}
	if err := handshake(); (err == nil) != good {
		b.Skipf("the handshake ends with %v", err)
	}
	before := cpu(b)
	for b.Loop() {
		if err := handshake(); (err == nil) != good {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/1e3, "cpu-us/op")
}

// cpu returns the CPU time of the process in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
