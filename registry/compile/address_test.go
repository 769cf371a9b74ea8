// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/transport"
)

func TestAddressPolicy(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	own := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8443")}
	for name, c := range map[string]struct {
		policy  transport.AddressPolicy
		refused bool
	}{
		"E2 allowedNetworks names the address": {transport.AddressPolicy{Allowed: loopback}, false},
		"E2 our own listener":                  {transport.AddressPolicy{Allowed: loopback, Own: own}, true},
		"E2 nothing is allowed":                {transport.AddressPolicy{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.put("webhook.yaml", strings.NewReplacer("%s", "local.policy",
				"service: {namespace: policies, name: policy, path: /judge}", `url: "https://127.0.0.1:8443/"`).Replace(webhookYAML))
			_, problems, _ := h.compile(compile.Options{Addresses: c.policy})
			if (len(problems) > 0) != c.refused {
				t.Fatal(problems)
			}
		})
	}
}

// Where no port is written it is that of https.
func TestAddressWithoutPort(t *testing.T) {
	policy := transport.AddressPolicy{
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Own:     []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:443")},
	}
	for url, refused := range map[string]bool{"https://127.0.0.1/": true, "https://127.0.0.1:8443/": false, "https://127.0.0.2/": false} {
		t.Run("E2 our own listener "+url, func(t *testing.T) {
			h := newHome(t)
			h.put("webhook.yaml", strings.NewReplacer("%s", "local.policy",
				"service: {namespace: policies, name: policy, path: /judge}", fmt.Sprintf("url: %q", url)).Replace(webhookYAML))
			_, problems, _ := h.compile(compile.Options{Addresses: policy})
			if (len(problems) > 0) != refused {
				t.Fatal(problems)
			}
		})
	}
}
