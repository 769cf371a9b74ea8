// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"math"
	"net/http"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// noon is when the fixtures are looked at.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return noon.Add(-d) }

// healthy is a process of three clusters that does well.
func healthy() status.Status {
	return status.Status{
		Version:  "v1.4.0",
		Started:  before(52*time.Hour + 11*time.Minute),
		Now:      noon,
		Ready:    true,
		Unready:  []string{},
		Snapshot: &status.Snapshot{Hash: "5f1c09e2ab7744d0c3e1", Short: "5f1c09e2ab77", Since: before(3*time.Hour + 20*time.Minute)},
		Clusters: []status.Cluster{
			{Name: "dev", Labels: map[string]string{"env": "dev", "region": "eu-west-1"}, Counts: counts(120411, 3114, 2, 0, 40110)},
			{Name: "prod-eu", Labels: map[string]string{"env": "prod", "region": "eu-west-1"}, TimeoutSeconds: 10, Counts: counts(2311902, 1203, 0, 0, 811209),
				Namespaces: &status.Namespaces{Cached: 412, Synced: true, Current: noon, LiveGets: 9}},
			{Name: "prod-us", Labels: map[string]string{"env": "prod", "region": "us-east-1"}, TimeoutSeconds: 10, Counts: counts(1904221, 977, 0, 0, 640022),
				Namespaces: &status.Namespaces{Cached: 388, Synced: true, Current: noon, LiveGets: 4}},
		},
		Chains: []status.Chain{{
			Mutating:   []string{"mutate/defaults/labels.defaults.example.com"},
			Validating: []string{"validate/image-policy/images.policy.example.com", "validate/license-scan/licenses.scan.example.com", "validate/owner-policy/owner.policy.example.com"},
		}},
		Webhooks: []status.Webhook{
			hook("mutate", "defaults", "labels.defaults.example.com", "t1", "CREATE of pods in v1", "Fail", "Enforce"),
			conditional(hook("validate", "image-policy", "images.policy.example.com", "t2", "CREATE and UPDATE of deployments in apps/v1, in namespaces labelled team=a, if all of 2 conditions hold", "Fail", "Enforce")),
			hook("validate", "license-scan", "licenses.scan.example.com", "t3", "CREATE and UPDATE of pods and pods/ephemeralcontainers in v1, outside the namespaces kube-system and monitoring", "Ignore", "Enforce"),
			hook("validate", "owner-policy", "owner.policy.example.com", "t4", "CREATE and UPDATE of deployments and statefulsets in apps/v1 (namespaced objects only)", "Fail", "Warn"),
		},
		Targets: []status.Target{
			target("t1", "https://labels.defaults.svc:443/mutate", 0.0021, "10.20.4.11:443", "10.20.7.2:443"),
			target("t2", "https://images.policy.svc:443/v1/validate", 0.0094, "10.20.4.18:443", "10.20.5.90:443", "10.20.9.31:443"),
			target("t3", "https://licenses.scan.svc:8443/check", 0.041, "10.20.6.6:8443", "10.20.6.7:8443"),
			target("t4", "https://owner.policy.svc:443/validate", 0.0046, "10.20.8.1:443", "10.20.8.2:443"),
		},
		Denials: []status.Decision{
			decided(42*time.Second, status.Decision{Cluster: "prod-eu", Operation: "CREATE", Resource: "pods", Namespace: "shop", Name: "web-7d9c5b", Code: 403},
				status.Involved{Configuration: "image-policy", Webhook: "images.policy.example.com", Result: "denied"}),
			decided(4*time.Minute, status.Decision{Cluster: "dev", Operation: "UPDATE", Group: "apps", Resource: "deployments", Namespace: "billing", Name: "api", Code: 422},
				status.Involved{Configuration: "image-policy", Webhook: "images.policy.example.com", Result: "denied"}),
			decided(39*time.Minute, status.Decision{Cluster: "dev", Operation: "CREATE", Resource: "pods", Namespace: "sandbox", Name: "tmp", Code: 403},
				status.Involved{Configuration: "image-policy", Webhook: "images.policy.example.com", Result: "denied"}),
		},
		History: []status.Change{
			{Time: before(3*time.Hour + 20*time.Minute), Snapshot: "5f1c09e2ab77", Clusters: 3, Webhooks: 4, Changed: []string{"image-policy/images.policy.example.com"}},
			{Time: before(26 * time.Hour), Snapshot: "90ab11d45e01", Clusters: 3, Webhooks: 4, Added: []string{"owner-policy/owner.policy.example.com", "Cluster/prod-us"}, Removed: []string{"legacy/quota.example.com"}},
			{Time: before(52 * time.Hour), Snapshot: "11d45e0190ab", Clusters: 2, Webhooks: 4},
		},
		Certificates: []status.Certificate{
			{Role: "admission serving", File: "/etc/dispatcher/tls/tls.crt", Subject: "CN=dispatcher.example.com", NotBefore: before(720 * time.Hour), NotAfter: noon.Add(61 * 24 * time.Hour)},
			{Role: "admission client authority", File: "/etc/dispatcher/tls/clients.crt", Subject: "CN=clusters,O=Example", NotBefore: before(720 * time.Hour), NotAfter: noon.Add(900 * 24 * time.Hour)},
		},
	}
}

// outage is the same process with one webhook gone, a change refused, and more.
func outage() status.Status {
	s := healthy()
	s.Problems = []manifest.Problem{{File: "registry/image-policy.yaml", Object: "ValidatingWebhookConfiguration/image-policy",
		Field: "webhooks[0].matchConditions[1].expression", Value: "object.metadata.labls", Reason: "undefined field 'labls'"}}
	refused := &status.LastError{Time: before(14 * time.Second), Cause: "Unreachable", Text: "licenses.scan.svc: connect: connection refused"}
	s.Targets[2].Endpoints[0] = status.Endpoint{Address: "10.20.6.6:8443", Condition: "ejected", LastError: refused, State: "open", Since: before(14 * time.Second), Until: noon.Add(6 * time.Second)}
	s.Targets[2].Endpoints[1] = status.Endpoint{Address: "10.20.6.7:8443", Condition: "ejected", LastError: refused, State: "open", Since: before(12 * time.Second), Until: noon.Add(8 * time.Second)}
	s.Targets[2].Latency = status.Latency{}
	s.Targets[1].Endpoints[2] = status.Endpoint{Address: "10.20.9.31:443", Condition: "recovering", LastError: refused, State: "ramping", Since: before(3 * time.Second), Width: 4, Outstanding: 4}
	for i := range s.Targets[2].Samples {
		if i > 20 && i < 48 {
			s.Targets[2].Samples[i].P99 *= 1 + 0.6*float64(i-20)
		}
		if i >= 54 {
			s.Targets[2].Samples[i].Attempts = 0
		}
	}
	s.Clusters[1].Counts.FailedOpen, s.Clusters[2].Namespaces.Stale = 61, true
	for i := range 6 {
		s.FailOpens = append(s.FailOpens, decided(time.Duration(i*7+2)*time.Second, status.Decision{Cluster: "prod-eu", Operation: "CREATE", Resource: "pods", Namespace: "shop", Name: "cart-worker-" + string(rune('a'+i)), Allowed: true},
			status.Involved{Configuration: "license-scan", Webhook: "licenses.scan.example.com", Result: "failed_open", Cause: []string{"BreakerOpen", "Timeout"}[i/4]}))
	}
	s.Clusters[0].Counts.Shed = 1
	s.Sheds = []status.Decision{decided(95*time.Second, status.Decision{Cluster: "dev", Operation: "CREATE", Group: "batch", Resource: "jobs", Namespace: "load", Name: "run-1", Code: 429},
		status.Involved{Configuration: "image-policy", Webhook: "images.policy.example.com", Result: "failed", Cause: "Shed"})}
	s.Pending = []status.Pending{{Webhook: "mesh/inject.mesh.example.com", URL: "https://inject.mesh.svc:443/", Reason: "inject.mesh.svc: connect: connection refused"}}
	s.History = append([]status.Change{{Time: before(50 * time.Second), Snapshot: "5f1c09e2ab77", Refused: true, Problems: s.Problems, Clusters: 3, Webhooks: 4}}, s.History...)
	s.Certificates[0].NotAfter = noon.Add(9 * 24 * time.Hour)
	s.Denials[0].Unavailable = []status.Involved{{Configuration: "license-scan", Webhook: "licenses.scan.example.com", Result: "failed_open", Cause: "BreakerOpen"}}
	s.Clusters[1].Counts.DeniedUnavailable = 1
	s.Notices = s.FindNotices()
	return s
}

// nameless is the same process when nothing can be looked up.
func nameless() status.Status {
	s := healthy()
	for i := range s.Targets {
		s.Targets[i].Endpoints, s.Targets[i].Latency = []status.Endpoint{}, status.Latency{}
		s.Targets[i].Unresolved = "look up " + s.Targets[i].URL[8:] + ": server misbehaving"
	}
	s.Notices = s.FindNotices()
	return s
}

// recovering is the same process when a webhook has just come back.
func recovering() status.Status {
	s := healthy()
	for i := range s.Targets[1].Endpoints {
		e := &s.Targets[1].Endpoints[i]
		e.Condition, e.State, e.Width, e.Since = "recovering", "ramping", 4, before(3*time.Second)
		e.LastError = &status.LastError{Time: before(40 * time.Second), Cause: "TLS", Text: "images.policy.svc: TLS handshake: tls: failed to verify certificate: x509: certificate signed by unknown authority"}
	}
	s.Notices = s.FindNotices()
	return s
}

// unconfigured is a process before its first configuration.
func unconfigured() status.Status {
	s := status.Status{Unready: []string{"no configuration has been loaded yet"}}
	s.Notices = s.FindNotices()
	return s
}

// mirrored has a registry in an API, of which a change is held back.
func mirrored() status.Status {
	s := healthy()
	s.Mirror = &mirrorstatus.Mirror{
		Generation: "0123456789abcdef", Since: before(4 * time.Hour), Heard: before(20 * time.Second), Objects: map[string]int{"Cluster": 3, "WebhookConfiguration": 4},
		Next:    &mirrorstatus.NextGeneration{Generation: "fedcba9876543210", Lost: []string{"every Cluster (there were 3)"}},
		Refused: []mirrorstatus.RefusedObject{{Object: "Cluster/<b>", Kept: true, Reason: "Invalid", Problems: []manifest.Problem{{Field: "spec.authentication", Reason: "is also of <i>prod</i>"}}}},

		RefusedCount: 7,
		Quarantined:  []mirrorstatus.QuarantinedGeneration{{Generation: "badbadbadbadbad", Since: before(time.Hour), Reason: "the dispatcher is not alive any more"}},
	}
	return s
}

// tried has a webhook in mode Shadow, and a denial that no webhook gave.
func tried() status.Status {
	s := healthy()
	s.Webhooks[2].Mode, s.Webhooks[2].Shadow = "Shadow", &status.ShadowCounts{Allowed: 983, Denied: 204, Failed: 7, Skipped: 2, Dropped: 3}
	s.Denials = []status.Decision{{Time: before(time.Second), Cluster: "dev", Decision: "unreadable", Code: http.StatusBadRequest}}
	return s
}

// local has policies and a plugin beside the webhooks, which no address serves.
func local() status.Status {
	s := healthy()
	in := func(phase, configuration, name, kind string, p *status.Policy) string {
		w := hook(phase, configuration, name, "", "CREATE of pods in v1", "Fail", "Enforce")
		w.Kind, w.Hedge, w.Policy = kind, false, p
		s.Webhooks = append(s.Webhooks, w)
		return w.ID
	}
	s.Chains[0].Mutating = append(s.Chains[0].Mutating,
		in("mutate", "sidecars", "shops", "policy", &status.Policy{Mutations: []string{"Object{metadata: Object.metadata{labels: {'a': 'b'}}}", "[JSONPatch{op: 'remove', path: '/spec/x'}]"}, Version: "0a1b2c3d"}))
	s.Chains[0].Validating = append(s.Chains[0].Validating,
		in("validate", "replicas", "everywhere", "policy", &status.Policy{Validations: []string{"object.spec.replicas <= int(params.data.max)", "object.spec.replicas > 1"},
			Actions: []string{"Warn", "Audit"}, Params: "ConfigMap of the registry", Version: "9f8e7d6c"}),
		in("validate", "pull", "AlwaysPullImages", "plugin", nil))
	return s
}

func counts(admissions, denied, failedOpen, shed, bypassed int64) status.Counts {
	return status.Counts{Admissions: admissions, Denied: denied, FailedOpen: failedOpen, Shed: shed, Bypassed: bypassed, Last: before(2 * time.Second)}
}

func hook(phase, configuration, name, target, matches, policy, mode string) status.Webhook {
	return status.Webhook{ID: phase + "/" + configuration + "/" + name, Configuration: configuration, Name: name, Phase: phase, Matches: matches,
		Rules: []string{"CREATE,UPDATE of deployments in apps/v1 (Namespaced)"}, MatchPolicy: "Equivalent", FailurePolicy: policy, OnFailure: onFailure(policy, mode), SideEffects: "None",
		TimeoutSeconds: 5, Mode: mode, Stage: "Validating", Hedge: true, Bindings: []string{"in-cluster-endpoints"}, Target: target}
}

func onFailure(policy, mode string) string {
	if policy == "Ignore" || mode == "Warn" {
		return status.Allow
	}
	return status.Deny
}

func conditional(w status.Webhook) status.Webhook {
	w.NamespaceSelector = "team=a"
	w.Conditions = []status.Condition{
		{Name: "not-the-controller", Expression: "request.userInfo.username != 'system:serviceaccount:flux-system:kustomize-controller'"},
		{Name: "has-containers", Expression: "has(object.spec.template.spec.containers) && object.spec.template.spec.containers.size() > 0"},
	}
	return w
}

func target(id, url string, p50 float64, addresses ...string) status.Target {
	t := status.Target{ID: id, URL: url, Attempts: 1204433, Retries: 210, Hedges: 40122, Reads: "Protobuf, zstd", Misread: 1,
		Latency: status.Latency{Attempts: 412, P50: p50, P95: p50 * 2.2, P99: p50 * 3.1}}
	for _, a := range addresses {
		t.Endpoints = append(t.Endpoints, status.Endpoint{Address: a, Condition: "healthy", State: "closed", Since: before(50 * time.Hour), Requests: 210, Outstanding: 1})
	}
	for i := range 60 {
		wave := 1 + 0.3*math.Sin(float64(i)/3+p50*1000) + 0.15*math.Sin(float64(i)*1.7)
		t.Samples = append(t.Samples, status.Sample{Time: before(time.Duration(59-i) * 10 * time.Second), Attempts: 400, P50: p50 * wave, P99: p50 * 3 * wave})
	}
	return t
}

// decided fills in what the Decisions of the fixtures have in common.
func decided(ago time.Duration, d status.Decision, w status.Involved) status.Decision {
	d.Time, d.UID, d.Phase, d.Version, d.Snapshot = before(ago), "0b8f3c1e-5a51-4e0a-9a43-6c1f6b7b2d10", "validate", "v1", "5f1c09e2ab77"
	d.Webhooks = []status.Involved{w}
	return d
}
