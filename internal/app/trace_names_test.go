// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"strings"
	"testing"
)

// One name that is long and not ASCII cost the whole batch of spans that it was in.
func TestLongNamesReachTheCollector(t *testing.T) {
	receiver, w := newReceiver(t, overHTTP), newWorld(t)
	p := w.start("lameDuck: 0s\ntelemetry: {userNames: true}\n")
	c := w.clientOf(p.awaitReady())
	long := "a" + strings.Repeat("é", 200)
	for _, name := range []string{"short", long} {
		w.post(c, "validate", "application/json", fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",`+
			`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},`+
			`"name":"p","namespace":%q,"operation":"CREATE","userInfo":{"username":%q},"object":{"metadata":{"name":"p"}}}}`, name, name))
	}
	p.end() // and with it the last batch
	got := map[string]string{}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	for _, s := range receiver.spans {
		if namespace := attributeOf(s, "k8s.namespace.name"); namespace != "" {
			got[namespace] = attributeOf(s, "user.name")
		}
	}
	cut := "a" + strings.Repeat("é", 127)
	if len(got) != 2 || got["short"] != "short" || got[cut] != cut {
		t.Errorf("the collector has the users %q, by namespace", got)
	}
	if w.logged("spans dropped") {
		t.Error("spans were dropped")
	}
}
