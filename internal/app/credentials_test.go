// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

func TestParseCertificates(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	one := string(authority.PEM)
	for _, c := range []struct {
		name, text string
		want       int
		err        string
	}{
		{"one", one, 1, ""},
		{"two, with text around them", "# east\n" + one + "# west\n" + one, 2, ""},
		{"a key beside it", one + "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n", 1, ""},
		{"none", "", 0, "holds no PEM certificate"},
		{"cut in the last block", one + one[:len(one)/2], 0, "holds an incomplete PEM block"},
		{"cut in a block before the last", one[:len(one)/2] + "\n" + one, 0, "holds an incomplete PEM block"},
		{"not a certificate", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", 0, "certificate 1: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseCertificates([]byte(c.text))
			if (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if len(got) != c.want {
				t.Errorf("%d certificates, want %d", len(got), c.want)
			}
		})
	}
}

// The parts have lengths in the sum: no byte can wander from one to the next.
func TestCredentialsSum(t *testing.T) {
	a := credentials{certificate: []byte("ab"), key: []byte("c")}
	b := credentials{certificate: []byte("a"), key: []byte("bc")}
	if a.sum() == b.sum() {
		t.Error("different credentials have one sum")
	}
}

func TestOwnAddresses(t *testing.T) {
	own := ownAddresses("127.0.0.1:8443", "localhost:8444", "127.0.0.1:0", "nonsense")
	if len(own) != 2 || own[0] != netip.MustParseAddrPort("127.0.0.1:8443") || own[1].Port() != 8444 || !own[1].Addr().IsLoopback() {
		t.Errorf("listeners at %v", own) // localhost may be of either family
	}
	for _, listen := range []string{":8443", "0.0.0.0:8443", "[::]:8443"} {
		everywhere := ownAddresses(listen)
		for _, at := range []string{"[::]:8443", "127.0.0.1:8443"} {
			if !slices.Contains(everywhere, netip.MustParseAddrPort(at)) {
				t.Errorf("a listener at %s is not at %s: %v", listen, at, everywhere)
			}
		}
	}
}
