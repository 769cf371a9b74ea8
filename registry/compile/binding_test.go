// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// bound is what a binding can say of a webhook, as it came out.
type bound struct {
	Position      int // among three
	Mode          chain.Mode
	Stage         chain.Stage
	Timeout       time.Duration
	FailurePolicy chain.FailurePolicy
	Conditions    string // failurePolicy of the matchConditions
	Compat        codec.Compatibility
	Repeat        transport.Repeat
	Probe         chain.Probe
	Join          chain.Join
	Wire          webhook.Wire
	Target        transport.Identity
}

const boundYAML = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks:
- {name: before.example.com, clientConfig: {url: "https://hook.example.com/"}, sideEffects: None, admissionReviewVersions: [v1]}
- {name: bound.example.com, clientConfig: {url: "https://hook.example.com/"}, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, timeoutSeconds: 5}
- {name: after.example.com, clientConfig: {url: "https://hook.example.com/"}, sideEffects: None, admissionReviewVersions: [v1]}
`

// bindingHome has a webhook to bind, and files that bindings name.
type bindingHome struct {
	home
	ca, key, otherCA, otherKey string
}

func newBindingHome(t *testing.T) bindingHome {
	later := time.Now().Add(1000 * time.Hour)
	one, other := newAuthority(t, "one", later), newAuthority(t, "other", later)
	h := bindingHome{newHome(t), one.pem(), one.keyPEM(), other.pem(), other.keyPEM()}
	h.put("webhook.yaml", boundYAML)
	for name, content := range map[string]string{
		"ca.pem": h.ca, "key.pem": h.key, "other.pem": h.otherCA, "otherkey.pem": h.otherKey, "token": "one\n", "othertoken": "two\n",
	} {
		h.put(name, content)
	}
	return h
}

// bind makes a binding of each text.
func (h bindingHome) bind(specs ...string) {
	for i, spec := range specs {
		h.put(fmt.Sprintf("binding%d.yaml", i), fmt.Sprintf("apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b%d}\n"+
			"spec: {webhooks: [policy/bound.example.com]%s}\n", i, spec))
	}
}

// bound returns what became of the webhook.
func (h bindingHome) bound() bound {
	h.t.Helper()
	webhooks := h.good(compile.Options{Encoding: webhook.JSON}).Clusters["dev"].Validating.Webhooks
	i := slices.IndexFunc(webhooks, func(w *chain.Entry) bool { return w.Name == "bound.example.com" })
	w, asked := webhooks[i], webhooks[i].Hook.(*webhook.Hook)
	return bound{i, w.Mode, w.Stage, w.Timeout, w.FailurePolicy, string(w.Spec.FailurePolicy), asked.Compat, asked.Repeat, w.Probe, w.Join, asked.Wire, asked.Target.Identity()}
}

// Each field of a binding says what it says and nothing else; what none says is as
// documented. Two bindings that say the same agree, and two that do not are refused
// (E16).
func TestBindingFields(t *testing.T) {
	h := newBindingHome(t)
	h.bind("")
	plain := transport.TargetSpec{URL: "https://hook.example.com/"}
	unsaid := bound{
		Position: 1, Timeout: 5 * time.Second, FailurePolicy: chain.Ignore, Conditions: "Ignore",
		Wire: webhook.Wire{Encoding: webhook.JSON}, Target: plain.Identity(),
	}
	if diff := cmp.Diff(unsaid, h.bound()); diff != "" {
		t.Fatalf("nothing is said (-want +got):\n%s", diff)
	}
	at := func(change func(*transport.TargetSpec)) func(*bound) {
		return func(b *bound) {
			spec := plain
			change(&spec)
			b.Target = spec.Identity()
		}
	}
	same := func(*bound) {}
	table := []struct {
		field, value string
		says         func(*bound)
	}{
		{"mode", "Enforce", same},
		{"mode", "Warn", func(b *bound) { b.Mode = chain.Warn }},
		{"mode", "Shadow", func(b *bound) { b.Mode = chain.Shadow }},
		{"timeout", "250ms", func(b *bound) { b.Timeout = 250 * time.Millisecond }},
		{"timeout", "5s", same},
		{"timeout", "1ms", func(b *bound) { b.Timeout = time.Millisecond }},
		{"endpoints", `[{address: "192.0.2.1:443"}]`, at(func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "192.0.2.1:443"}}
		})},
		{"endpoints", `[{address: "192.0.2.1:443", serverName: other.example.com}]`, at(func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "192.0.2.1:443", ServerName: "other.example.com"}}
		})},
		{"endpoints", `[{address: "192.0.2.1:443", caFile: ca.pem}]`, at(func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "192.0.2.1:443", CABundle: []byte(h.ca)}}
		})},
		{"endpoints", `[{address: "192.0.2.1:44", serverName: 3.example.com}]`, at(func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "192.0.2.1:44", ServerName: "3.example.com"}}
		})},
		{"endpoints", `[{address: "192.0.2.1:443", serverName: .example.com}]`, at(func(s *transport.TargetSpec) {
			s.Endpoints = []transport.EndpointSpec{{Address: "192.0.2.1:443", ServerName: ".example.com"}}
		})},
		{"caFile", "ca.pem", at(func(s *transport.TargetSpec) { s.CABundle = []byte(h.ca) })},
		{"caFile", "other.pem", at(func(s *transport.TargetSpec) { s.CABundle = []byte(h.otherCA) })},
		{"clientCertificate", "{certFile: ca.pem, keyFile: key.pem}", at(func(s *transport.TargetSpec) {
			s.ClientCertificate, s.ClientKey = []byte(h.ca), []byte(h.key)
		})},
		{"clientCertificate", "{certFile: other.pem, keyFile: otherkey.pem}", at(func(s *transport.TargetSpec) {
			s.ClientCertificate, s.ClientKey = []byte(h.otherCA), []byte(h.otherKey)
		})},
		{"bearerTokenFile", "token", at(func(s *transport.TargetSpec) { s.BearerToken = "one" })},
		{"bearerTokenFile", "othertoken", at(func(s *transport.TargetSpec) { s.BearerToken = "two" })},
		{"stage", "Validating", same},
		{"stage", "Transactional", func(b *bound) { b.Stage, b.Position = chain.StageTransactional, 2 }},
		{"order", "-1", func(b *bound) { b.Position = 0 }},
		{"order", "0", same},
		{"order", "1", func(b *bound) { b.Position = 2 }},
		{"failurePolicy", "Retry", func(b *bound) {
			b.FailurePolicy, b.Conditions, b.Repeat.Failures = chain.Fail, "Fail", true
		}},
		{"hedge", "Auto", same},
		{"hedge", `"On"`, same},
		{"hedge", `"Off"`, func(b *bound) { b.Repeat.NoHedge = true }},
		{"denyWins", "true", func(b *bound) { b.Repeat.DenyWins = true }},
		{"denyWins", "false", same},
		{"breaker", "{enabled: false}", at(func(s *transport.TargetSpec) { s.Breaker.Off = true })},
		{"breaker", "{enabled: true}", same},
		{"breaker", "{failurePercent: 20}", at(func(s *transport.TargetSpec) { s.Breaker.FailureRatio = 0.2 })},
		{"breaker", "{failurePercent: 1, minRequests: 1, openTime: 100ms}", at(func(s *transport.TargetSpec) {
			s.Breaker = transport.BreakerSpec{FailureRatio: 0.01, MinRequests: 1, OpenTime: 100 * time.Millisecond}
		})},
		{"breaker", "{failurePercent: 100, openTime: 1m}", at(func(s *transport.TargetSpec) {
			s.Breaker = transport.BreakerSpec{FailureRatio: 1, OpenTime: time.Minute}
		})},
		{"probe", "Connect", same},
		{"probe", "Review", func(b *bound) { b.Probe = chain.ProbeReview }},
		{"probe", "Skip", func(b *bound) { b.Probe = chain.ProbeSkip }},
		{"join", "Enforce", same},
		{"join", "WhenReady", func(b *bound) { b.Join = chain.JoinWhenReady }},
		{"encoding", "Auto", func(b *bound) { b.Wire.Encoding = webhook.Auto }},
		{"encoding", "JSON", same},
		{"encoding", "Protobuf", func(b *bound) { b.Wire.Encoding = webhook.Protobuf }},
		{"encoding", "ProtobufNative", func(b *bound) { b.Wire.Encoding = webhook.ProtobufNative }},
		{"compression", `"Off"`, same},
		{"compression", "Auto", func(b *bound) { b.Wire.Compression = webhook.CompressAuto }},
		{"compression", "Gzip", func(b *bound) { b.Wire.Compression = webhook.CompressGzip }},
		{"compression", "Zstd", func(b *bound) { b.Wire.Compression = webhook.CompressZstd }},
		{"compatibility", "Strict", same},
		{"compatibility", "APIServer", func(b *bound) { b.Compat = codec.APIServer }},
	}
	seen := map[string]string{ // the last value of each field
		"webhooks": "", "clusterSelector": "", "onlySelectedClusters": "", // they say which webhooks and clusters: TestBindingsAgainstPairs
	}
	for _, row := range table {
		text := fmt.Sprintf(", %s: %s", row.field, row.value)
		t.Run(row.field+" "+row.value, func(t *testing.T) {
			want := unsaid
			row.says(&want)
			h.t = t
			h.bind(text, text)
			if diff := cmp.Diff(want, h.bound()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
		if before, known := seen[row.field]; known {
			t.Run("E16 "+row.field, func(t *testing.T) {
				h.t = t
				h.bind(before, text)
				_, problems, _ := h.compile(compile.Options{})
				want := "spec." + row.field + ": disagrees with WebhookBinding/b0"
				if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
					t.Errorf("problems %v, want %q", problems, want)
				}
			})
		}
		seen[row.field] = text
	}
	for f := range reflect.TypeFor[v1alpha1.WebhookBindingSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.HasSuffix(name, "SecretRef") || strings.HasSuffix(name, "ConfigMapRef") { // a file by the time when it is compiled
			continue
		}
		if _, known := seen[name]; !known {
			t.Errorf("spec.%s is in no row", name)
		}
	}
}
