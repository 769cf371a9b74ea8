// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

func TestAddressPolicy(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	own := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8443")}
	for name, c := range map[string]struct {
		policy  webhook.AddressPolicy
		refused bool
	}{
		"E2 allowedNetworks names the address": {webhook.AddressPolicy{Allowed: loopback}, false},
		"E2 our own listener":                  {webhook.AddressPolicy{Allowed: loopback, Own: own}, true},
		"E2 nothing is allowed":                {webhook.AddressPolicy{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.put("webhook.yaml", strings.NewReplacer("%s", "local.policy",
				"service: {namespace: policies, name: policy, path: /judge}", `url: "https://127.0.0.1:8443/"`).Replace(webhookYAML))
			_, problems, _ := registry.Validate(registry.Settings{Addresses: c.policy}, []string{h.dir})
			if (len(problems) > 0) != c.refused {
				t.Fatal(problems)
			}
		})
	}
}
