// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
)

func TestIsPathSecret(t *testing.T) {
	for secret, want := range map[string]bool{
		"":                            false,
		strings.Repeat("a", 31):       false,
		strings.Repeat("a", 32):       true,
		strings.Repeat("z9", 64):      true,
		strings.Repeat("z", 129):      false,
		strings.Repeat("A", 40):       false,
		strings.Repeat("-", 40):       false,
		strings.Repeat("0f", 32):      false, // a sum
		strings.Repeat("0g", 32):      true,
		strings.Repeat("0f", 33):      true,
		strings.Repeat("é", 20):       false,
		strings.Repeat("a", 40) + "/": false,
	} {
		if got := chain.IsPathSecret([]byte(secret)); got != want {
			t.Errorf("%q: %v", secret, got)
		}
	}
}

func TestAcceptsFrom(t *testing.T) {
	everywhere, some := &chain.Cluster{}, &chain.Cluster{SourceRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for from, want := range map[string]bool{"10.1.2.3": true, "11.0.0.1": false, "fd12::1": true, "::1": false, "::ffff:10.1.2.3": false} {
		at := netip.MustParseAddr(from)
		if got := some.AcceptsFrom(at); got != want || !everywhere.AcceptsFrom(at) {
			t.Errorf("A24 from %s: %v", from, got)
		}
	}
	if some.AcceptsFrom(netip.Addr{}) {
		t.Error("A24 an address that is none is in a range")
	}
}

func TestCredentialsHas(t *testing.T) {
	secret := []byte(strings.Repeat("s3", 20))
	c := chain.Credentials{PathSecrets: []chain.PathSecretSum{chain.SumOfPathSecret(secret)}}
	if !c.Has(secret) || c.Has([]byte(strings.Repeat("s4", 20))) || (&chain.Credentials{}).Has(secret) {
		t.Error("A23 the wrong secrets are known")
	}
	if short := []byte("short"); (&chain.Credentials{PathSecrets: []chain.PathSecretSum{chain.SumOfPathSecret(short)}}).Has(short) {
		t.Error("A23 a short secret is known")
	}
}
