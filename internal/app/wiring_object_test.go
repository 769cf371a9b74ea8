// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// pathSecret is one of a Cluster.
const pathSecret = "5f2b9c04d1e84a7786c3f0aa91be6d28c0ffee17"

// clusterWires are the fields of Cluster.spec.
func clusterWires() []wire {
	known := func(s pki.Subject) func(*testing.T, *rig) {
		return func(_ *testing.T, r *rig) {
			r.issue("somebody", s)
			r.start().allows(question{client: r.clientAs("somebody")})
		}
	}
	return []wire{
		{field: "authentication.certificate.commonNames", value: "authentication: {certificate: {commonNames: [somebody]}}", observe: known(pki.Subject{CommonName: "somebody"})},
		{field: "authentication.certificate.dnsNames", value: "authentication: {certificate: {dnsNames: [api.example.com]}}", observe: known(pki.Subject{DNSNames: []string{"api.example.com"}})},
		{field: "authentication.certificate.uris", value: `authentication: {certificate: {uris: ["spiffe://example.com/east"]}}`, observe: known(pki.Subject{URIs: []string{"spiffe://example.com/east"}})},
		{field: "authentication.certificate.caFile", by: "internal/app.TestPinnedAuthority"},
		{field: "authentication.certificate.caSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.certificate.caConfigMapRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.bearerTokenSHA256", value: fmt.Sprintf("authentication: {bearerTokenSHA256: [%q]}", fmt.Sprintf("%x", sha256.Sum256([]byte("a-token")))), observe: func(_ *testing.T, r *rig) {
			r.configure("tls: {clientAuth: IfGiven}")
			r.start().allows(question{client: r.clientAs(""), token: "a-token"})
		}},
		{field: "authentication.pathSecretSHA256", value: fmt.Sprintf("authentication: {pathSecretSHA256: [%q]}", fmt.Sprintf("%x", sha256.Sum256([]byte(pathSecret)))), observe: func(t *testing.T, r *rig) {
			r.configure("tls: {clientAuth: IfGiven}")
			r.start().allows(question{client: r.clientAs(""), phase: pathSecret + "/validate"})
			for _, path := range []string{"validate", strings.Repeat("x", len(pathSecret)) + "/validate"} {
				if got := r.ask(question{client: r.clientAs(""), phase: path}); got.status != http.StatusForbidden {
					t.Errorf("%s: HTTP status %d, %v", path, got.status, got.err)
				}
			}
		}},
		{field: "authentication.sourceRanges", value: "authentication: {certificate: {commonNames: [east]}, sourceRanges: [10.0.0.0/8]}", observe: func(t *testing.T, r *rig) {
			r.issue("east", pki.Subject{CommonName: "east"})
			if got := r.start().ask(question{}); got.status != http.StatusForbidden {
				t.Errorf("from another address: HTTP status %d, %v", got.status, got.err)
			}
		}},
		{field: "authentication.jwt.issuer", by: "internal/app.TestTokens"},
		{field: "authentication.jwt.audiences", by: "internal/app.TestTokens"},
		{field: "authentication.jwt.subjects", by: "internal/app.TestTokens"},
		{field: "authentication.jwt.jwksFile", by: "internal/app.TestTokens"},
		{field: "authentication.jwt.jwksSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.jwt.jwksConfigMapRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.anonymous", value: "authentication: {anonymous: true}", observe: func(_ *testing.T, r *rig) {
			r.configure("tls: {clientAuth: IfGiven}")
			r.start().allows(question{client: r.clientAs("")})
		}},
		{field: "authentication.callers[].name", by: "internal/app.TestCallers"},
		{field: "authentication.callers[].certificate.commonNames", by: "internal/app.TestCallers"},
		{field: "authentication.callers[].certificate.dnsNames", by: "internal/app.TestCallers"},
		{field: "authentication.callers[].certificate.uris", by: "internal/app.TestCallers"},
		{field: "authentication.callers[].certificate.caFile", by: "internal/app.TestCallers"},
		{field: "authentication.callers[].certificate.caSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.callers[].certificate.caConfigMapRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.callers[].bearerTokenSHA256", by: "internal/app.TestCallers"},
		{field: "authentication.callers[].jwt.issuer", by: "internal/app.TestTokens"},
		{field: "authentication.callers[].jwt.audiences", by: "internal/app.TestTokens"},
		{field: "authentication.callers[].jwt.subjects", by: "internal/app.TestTokens"},
		{field: "authentication.callers[].jwt.jwksFile", by: "internal/app.TestTokens"},
		{field: "authentication.callers[].jwt.jwksSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.callers[].jwt.jwksConfigMapRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "authentication.callers[].apiGroups", by: "internal/app.TestCallers"},
		{field: "timeoutSeconds", value: "timeoutSeconds: 10", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{timeout: "5s"})
			r.toldWithin(4)
		}},
		{field: "kubernetesVersion", value: `kubernetesVersion: "1.37"`, observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().allows(question{group: "authorization.k8s.io", resource: "subjectaccessreviews"})
		}},
		{field: "namespaces.labels", value: "namespaces: {labels: {shop: {tier: gold}}}", observe: labelled},
		{field: "namespaces.defaultLabels", value: "namespaces: {defaultLabels: {tier: gold}}", observe: labelled},
		{field: "kubeconfigFile", by: "internal/app.TestNamespacesOfTheCluster"},
		{field: "kubeconfigSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "bypass.inherit", value: "bypass: {inherit: false}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().denies(question{namespace: "kube-system"}, "says policy")
		}},
		{field: "bypass.rules", value: "bypass: {rules: [{name: mine, users: [ann]}]}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().allows(question{}, `"mine"`)
		}},
		{field: "failOpen.inherit", value: "failOpen: {inherit: false}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).fail)
			r.start().denies(question{resource: "nodes", operation: "UPDATE", user: "system:kube-controller-manager"}, "HTTPStatus")
		}},
		{field: "failOpen.rules", value: "failOpen: {rules: [{name: mine, users: [ann]}]}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).fail)
			r.start().allows(question{}, "mine")
		}},
		{field: "services[].names", by: "registry/compile.TestE23Services"},
		{field: "services[].gateway", by: "registry/compile.TestE23Services"},
		{field: "services[].endpoints", by: "registry/compile.TestE23Services"},
		{field: "mirror.hosts", by: "mirror.TestE24MirrorByLabel"},
		{field: "registration.policy", by: "controller.TestRegistrationIsApplied"},
		{field: "limits.requestBytes", value: "limits: {requestBytes: 2000}", observe: func(_ *testing.T, r *rig) {
			r.start().denies(question{size: 3000}, `"code":413`)
		}},
		{field: "cell", value: "cell: c7", observe: inCell},
		{field: "previousCell", value: "{cell: c8, previousCell: c7}", observe: inCell},
	}
}

// inCell is a process that serves cell c7, and a cluster besides that it does not serve.
func inCell(t *testing.T, r *rig) {
	r.cluster("west", "cell: c9")
	r.configure("cell: c7")
	r.play((*call).deny)
	r.start().denies(question{}, "says policy")
	if got := r.ask(question{cluster: "west"}); got.status != http.StatusForbidden {
		t.Errorf("a cluster of another cell: HTTP status %d, %v", got.status, got.err)
	}
}

// labelled is a webhook for gold namespaces alone.
func labelled(_ *testing.T, r *rig) {
	r.register(hook{name: "policy", more: "namespaceSelector: {matchLabels: {tier: gold}}"})
	r.play((*call).deny)
	r.start().denies(question{}, "says policy")
}

// bindingWires are the fields of WebhookBinding.spec. The webhook that is bound is
// policy.
func bindingWires() []wire {
	elsewhere := elsewhereWith("endpoints: [{address: %s, caFile: elsewhere.pem, serverName: elsewhere.example.com}]")
	return []wire{
		{field: "webhooks", value: `{webhooks: ["oth*/*"], mode: Warn}`, observe: func(_ *testing.T, r *rig) {
			r.register(hook{name: "other"})
			r.play((*call).deny)
			r.start().allows(question{}, "says other")
		}},
		{field: "clusterSelector", value: "{mode: Warn, clusterSelector: {matchLabels: {name: west}}}", observe: func(_ *testing.T, r *rig) {
			r.cluster("west", "")
			r.play((*call).deny)
			r.start().denies(question{})
			r.allows(question{cluster: "west"}, "says policy")
		}},
		{field: "onlySelectedClusters", value: "{onlySelectedClusters: true, clusterSelector: {matchLabels: {name: west}}}", observe: func(_ *testing.T, r *rig) {
			r.cluster("west", "")
			r.play((*call).deny)
			r.start().allows(question{})
			r.denies(question{cluster: "west"}, "says policy")
		}},
		{field: "mode", value: "mode: Warn", observe: func(_ *testing.T, r *rig) {
			r.play((*call).deny)
			r.start().allows(question{}, "says policy")
		}},
		{field: "timeout", value: "timeout: 3s", observe: func(_ *testing.T, r *rig) {
			r.start().allows(question{})
			r.toldWithin(3)
		}},
		{field: "caFile", value: "caFile: elsewhere.pem", observe: elsewhereWith("caFile: elsewhere.pem, endpoints: [{address: %s, serverName: elsewhere.example.com}]")},
		{field: "caSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "caConfigMapRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "endpoints[].address", value: `endpoints: [{address: "127.0.0.1:1"}]`, observe: elsewhere},
		{field: "endpoints[].caSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "endpoints[].caConfigMapRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "endpoints[].caFile", value: "endpoints: [{caFile: elsewhere.pem}]", observe: elsewhere},
		{field: "endpoints[].serverName", value: "endpoints: [{serverName: elsewhere.example.com}]", observe: elsewhere},
		{field: "clientCertificate.certFile", value: "clientCertificate: {certFile: own.crt, keyFile: own.key}", observe: presents},
		{field: "clientCertificate.keyFile", value: "clientCertificate: {certFile: own.crt, keyFile: own.key}", observe: presents},
		{field: "clientCertificate.secretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "bearerTokenSecretRef", by: "registry/manifest/testdata/references.txtar"},
		{field: "bearerTokenFile", value: "bearerTokenFile: token", observe: func(t *testing.T, r *rig) {
			r.write("registry/token", []byte("a-token\n"))
			r.start().allows(question{})
			if got := r.last().header.Get("Authorization"); got != "Bearer a-token" {
				t.Errorf("the webhook is shown %q", got)
			}
		}},
		{field: "stage", value: "stage: Transactional", observe: func(t *testing.T, r *rig) {
			r.register(hook{name: "policy"}, hook{name: "quick"})
			r.play((*call).deny)
			r.start().denies(question{}, "says quick")
			if n := len(r.calls("policy")); n > 0 {
				t.Error("it is called although another webhook denied")
			}
		}},
		{field: "order", value: "order: -1", observe: func(t *testing.T, r *rig) {
			r.register(hook{name: "first", mutating: true}, hook{name: "policy", mutating: true})
			r.start().allows(question{phase: "mutate"})
			if last := r.last().hook; last != "first" {
				t.Errorf("%s is called last", last)
			}
		}},
		{field: "failurePolicy", value: "failurePolicy: Retry", observe: func(_ *testing.T, r *rig) {
			r.play(func(c *call) {
				if c.nth == 1 {
					c.fail()
					return
				}
				c.allow()
			})
			r.start().allows(question{})
		}},
		{field: "hedge", value: `hedge: "Off"`, observe: neverHedged},
		{field: "denyWins", value: "denyWins: true", observe: denialWins},
		{field: "breaker.enabled", value: "breaker: {enabled: false}", observe: staysClosed((*call).fail)},
		{field: "breaker.failurePercent", value: "breaker: {failurePercent: 100}", observe: staysClosed(func(c *call) {
			if c.nth%4 == 0 {
				c.allow()
				return
			}
			c.fail()
		})},
		{field: "breaker.minRequests", value: "breaker: {minRequests: 1000}", observe: staysClosed((*call).fail)},
		{field: "breaker.openTime", value: "breaker: {openTime: 100ms}", observe: func(_ *testing.T, r *rig) {
			r.start()
			r.webhook.Close()
			is := func(state string) func() bool {
				return func() bool { return must(r.process.status(http.DefaultClient)).Targets[0].Endpoints[0].State == state }
			}
			r.eventually("the circuit opens", func() bool { r.ask(question{timeout: "1s"}); return is("open")() || is("half-open")() })
			// 5 s by default, less a fifth of jitter.
			r.within(4*time.Second, func() { r.eventually("a probe may go", is("half-open")) })
		}},
		{field: "probe", by: "internal/app.TestE15ProbeReview"},
		{field: "join", by: "internal/app.TestE15NewWebhookJoinsWhenItAnswers"},
		{field: "encoding", value: "encoding: Protobuf", observe: func(t *testing.T, r *rig) {
			r.start().allows(question{})
			if got := r.last().header.Get("Content-Type"); got != "application/vnd.kubernetes.protobuf" {
				t.Errorf("the webhook is sent %s", got)
			}
		}},
		{field: "compression", value: "compression: Gzip", observe: func(t *testing.T, r *rig) {
			r.start().allows(question{size: 20_000})
			if got := r.last().header.Get("Content-Encoding"); got != "gzip" {
				t.Errorf("the webhook is sent %q", got)
			}
		}},
		{field: "compatibility", value: "compatibility: APIServer", observe: func(_ *testing.T, r *rig) {
			r.play(func(c *call) { c.say(`"allowed":false,"allowed":true`) })
			r.start().allows(question{})
		}},
	}
}

// elsewhereWith is an Endpoint with a certificate of another authority and name, bound by spec
// with its address.
func elsewhereWith(spec string) func(*testing.T, *rig) {
	return func(_ *testing.T, r *rig) {
		authority := must(pki.NewAuthority("elsewhere"))
		r.write("registry/elsewhere.pem", authority.PEM)
		r.bind("{" + fmt.Sprintf(spec, r.another(authority, pki.Subject{DNSNames: []string{"elsewhere.example.com"}})) + "}")
		r.webhook.Close()
		r.play((*call).deny)
		r.start().denies(question{}, "says policy")
	}
}

// presents is a webhook that asks for certificates.
func presents(t *testing.T, r *rig) {
	pair := must(r.authority.Issue(pki.Subject{CommonName: "dispatcher-of-east"}))
	r.write("registry/own.crt", pair.Certificate)
	r.write("registry/own.key", pair.Key)
	r.register(hook{name: "policy", url: "https://" + r.another(r.authority, pki.Subject{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})})
	r.start().allows(question{})
	if got := r.last().presented; got != "dispatcher-of-east" {
		t.Errorf("the webhook is shown %q", got)
	}
}

// staysClosed is a webhook that is called each time, however it behaves.
func staysClosed(play func(*call)) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		r.play(play)
		r.start()
		for range 40 {
			if got := r.ask(question{}); strings.Contains(got.text, "BreakerOpen") {
				t.Fatalf("the circuit is open: %s", got.text)
			}
		}
	}
}

func podOfAnn(int) question { return question{} }

// neverHedged has another webhook hedged three times, and policy not.
func neverHedged(t *testing.T, r *rig) {
	r.register(hook{name: "policy"}, hook{name: "control"})
	r.start()
	hedged := 0
	r.rounds("control", podOfAnn, func(c *call, _ bool) { c.allow() }, func(got round) bool {
		if got.attempts["policy"] > 1 {
			t.Errorf("%d attempts", got.attempts["policy"])
		}
		if got.hedged {
			hedged++
		}
		return hedged == 3
	})
}

// denialWins has a hedge allow, and the first attempt deny shortly after.
func denialWins(_ *testing.T, r *rig) {
	r.start()
	denied := 0
	r.rounds("policy", podOfAnn, func(c *call, hedged bool) {
		if !hedged {
			<-time.After(30 * time.Millisecond)
			c.deny()
			return
		}
		c.allow()
	}, func(got round) bool {
		if got.hedged && !got.allowed {
			denied++
		}
		return denied == 3 // twice it might have overtaken the allow on a busy machine
	})
}

// ruleWires are the fields of the rules of bypass and failOpen.
func ruleWires() []wire {
	by := func(field, value string, q question) wire {
		return wire{field: field, value: "{name: mine, " + value + "}", observe: func(_ *testing.T, r *rig) {
			r.play((*call).fail)
			r.start().allows(q, `ignored by failOpen rule \"mine\"`)
			r.denies(question{namespace: "other", user: "bob", operation: "DELETE", resource: "configmaps"}, "HTTPStatus")
		}}
	}
	return []wire{
		by("name", "users: [ann]", question{}),
		by("namespaces", "namespaces: [shop]", question{}),
		by("users", "users: [ann]", question{}),
		by("groups", "groups: [dev]", question{groups: `["dev"]`}),
		by("serviceAccounts", "serviceAccounts: [shop/robot]", question{user: "system:serviceaccount:shop:robot"}),
		by("resources", "resources: [/pods]", question{}),
		by("operations", "operations: [CREATE]", question{}),
		by("extraKeys", "extraKeys: [example.com/scope]", question{extra: `{"example.com/scope":["x"]}`}),
	}
}
