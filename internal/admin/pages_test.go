// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/admin"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

func pagesOf(s func() status.Status) http.Handler {
	return admin.NewPages(s, slog.New(slog.DiscardHandler))
}

func fetch(h http.Handler, method, path string) *httptest.ResponseRecorder {
	got := httptest.NewRecorder()
	h.ServeHTTP(got, httptest.NewRequest(method, path, nil))
	return got
}

// text is what a person reads of a page.
func text(page string) string {
	page = regexp.MustCompile(`(?s)<head>.*</head>|<[^>]*>`).ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(page), " ")
}

// Each page says without any script what it is there for.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		name, path string
		status     func() status.Status
		code       int
		says       []string
	}{
		{"overview", "/", healthy, http.StatusOK, []string{
			"Ready, all is well", "Serving snapshot 5f1c09e2ab77 for 3 h 20 min", "Endpoints healthy 9 of 9",
			"images.policy.example.com validate · image-policy 3 healthy Enforce denied Fail 412 9.4 ms 29 ms", "2 healthy Warn allowed Fail 412",
			"10.20.4.11:443 healthy 0 of 210 1 https://labels.defaults.svc:443/mutate",
			"42 s ago prod-eu CREATE pods shop/web-7d9c5b", "image-policy/images.policy.example.com denied 403", "None since the start.",
			"dev env=dev, region=eu-west-1 4 120 411 3 114",
			"changed image-policy/images.policy.example.com", "added owner-policy/owner.policy.example.com , Cluster/prod-us",
			"admission serving /etc/dispatcher/tls/tls.crt CN=dispatcher.example.com", "ends in 61 days",
			"Version v1.4.0 · up 2 d 4 h"}},
		{"outage", "/", outage, http.StatusOK, []string{
			"Ready, with 4 critical notices", "Critical Webhook license-scan/licenses.scan.example.com is not callable: no endpoint of 2 answers (Unreachable) " +
				"Allowed with a warning in dev, prod-eu and prod-us, unchecked: what license-scan/licenses.scan.example.com selects. " +
				"Last error: licenses.scan.svc: connect: connection refused Bring the webhook back", "Runbook",
			"ejected tried again at 12:00:06 Last error, 14 s ago: licenses.scan.svc: connect: connection refused",
			"license-scan/licenses.scan.example.com unavailable: BreakerOpen", "1 beside a failed call",
			"6 admissions failed open in the last ten minutes",
			"webhooks[0].matchConditions[1].expression", "undefined field &#39;labls&#39;", "recovering 4 calls at a time", "Webhook image-policy/images.policy.example.com is recovering at 1 of 3 endpoints: 4 calls at a time The other endpoints are called.",
			"license-scan/licenses.scan.example.com BreakerOpen allowed", "denied 429", "refused", "stale", "ends in 9 days"}},
		{"a registry in an API", "/", mirrored, http.StatusOK, []string{
			"Generation 0123456789ab has been served for 4 h , with 7 objects. The API was last heard 20 s ago .",
			"held back Generation fedcba987654 has lost every Cluster (there were 3). If that is meant: kubectl annotate registries.dispatcher.dev registry --overwrite dispatcher.dev/confirm-shrink=fedcba9876543210",
			"Cluster/&lt;b&gt; Invalid its last version spec.authentication: is also of &lt;i&gt;prod&lt;/i&gt;", "and 6 more",
			"badbadbadbad 1 h ago the dispatcher is not alive any more"}},
		{"webhook", "/webhooks/image-policy/images.policy.example.com", healthy, http.StatusOK, []string{
			"CREATE and UPDATE of deployments in apps/v1, in namespaces labelled team=a, if all of 2 conditions hold",
			"Enforce: its denial denies", "Fail: the admission is denied", "5 s, or what is left", "None: it may be asked more than once",
			"WebhookBinding/in-cluster-endpoints", "dev , prod-eu , prod-us", "not-the-controller request.userInfo.username", "10.20.9.31:443", "the highest is 40 ms"}},
		{"a webhook in mode Warn", "/webhooks/owner-policy/owner.policy.example.com", healthy, http.StatusOK, []string{
			"If a call fails Fail: the admission is allowed with a warning: in mode Warn it never denies"}},
		{"a webhook that is down", "/webhooks/license-scan/licenses.scan.example.com", outage, http.StatusOK, []string{"Critical Webhook license-scan/licenses.scan.example.com is not callable"}},
		{"an outage of DNS", "/", nameless, http.StatusOK, []string{"Ready, with 1 critical notice", "4 webhooks", "are not callable: no address", "Endpoints healthy 0 of 0 4 targets without an address"}},
		{"a webhook that recovers", "/", recovering, http.StatusOK, []string{"Ready, with 1 warning", "is recovering: 12 calls at a time", "3 of 3 recovering", "Endpoints healthy 6 of 9 3 recovering"}},
		{"filtered", "/?cluster=dev&webhook=license", outage, http.StatusOK, []string{"Show all", "Ready, with 2 critical notices", "Clusters 1 callers Webhooks 1 0 pending"}},
		{"a Shadow webhook", "/webhooks/license-scan/licenses.scan.example.com", tried, http.StatusOK, []string{
			"Shadow: it is called and recorded", "Would have blocked 204 denied, 0 refused, 7 failed", "Would have passed 983 allowed, 0 failed open, 2 skipped; 3 were not asked"}},
		{"what is in the process", "/", local, http.StatusOK, []string{
			"shops mutate · sidecars in process", "everywhere validate · replicas in process", "AlwaysPullImages validate · pull in process"}},
		{"a validating policy", "/webhooks/replicas/everywhere", local, http.StatusOK, []string{
			"What it decides If a validation does not hold Warn, Audit Params ConfigMap of the registry Version 9f8e7d6c " +
				"Validations object.spec.replicas &lt;= int(params.data.max) object.spec.replicas &gt; 1 A policy of this process: no address is called."}},
		{"a mutating policy", "/webhooks/sidecars/shops", local, http.StatusOK, []string{
			"What it decides Version 0a1b2c3d Mutations, in order Object{metadata: Object.metadata{labels: {&#39;a&#39;: &#39;b&#39;}}} [JSONPatch{op: &#39;remove&#39;, path: &#39;/spec/x&#39;}] " +
				"A policy of this process: no address is called."}},
		{"a plugin", "/webhooks/pull/AlwaysPullImages", local, http.StatusOK, []string{"all objects A plugin of this process: no address is called."}},
		{"a denial by no webhook", "/", tried, http.StatusOK, []string{"unreadable denied 400"}},
		{"a pending webhook", "/webhooks/mesh/inject.mesh.example.com", outage, http.StatusOK, []string{"Pending inject.mesh.svc: connect: connection refused"}},
		{"cluster", "/clusters/prod-eu", healthy, http.StatusOK, []string{
			"prod-eu", "env=prod, region=eu-west-1", "watched 412 cached, 9 asked for", "Mutating webhooks, in order", "labels.defaults.example.com", "42 s ago prod-eu"}},
		{"no such cluster", "/clusters/nowhere", healthy, http.StatusNotFound, []string{"Cluster nowhere is not part of what is served"}},
		{"no such webhook", "/webhooks/a/b", healthy, http.StatusNotFound, []string{"Webhook a/b is not part of what is served"}},
		{"before the first configuration", "/", unconfigured, http.StatusOK,
			[]string{"Not ready", "Not ready: no configuration has been loaded yet", "admissions are not accepted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fetch(pagesOf(c.status), http.MethodGet, c.path)
			if got.Code != c.code {
				t.Errorf("HTTP status %d", got.Code)
			}
			page := text(got.Body.String())
			for _, want := range c.says {
				if !strings.Contains(page, want) {
					t.Errorf("it does not say %q:\n%s", want, page)
				}
			}
		})
	}
}

// Whatever is asked for, nothing but what the listener serves is loaded, nothing
// stands in the page that could run, and only reading is allowed.
func TestHardened(t *testing.T) {
	pages := pagesOf(outage)
	for _, path := range []string{"/", "/clusters/dev", "/webhooks/image-policy/images.policy.example.com", "/api/v1/status",
		"/assets/style.css", "/assets/script.js", "/assets/icon.svg", "/nowhere", "/assets/", "/assets/overview.html"} {
		got := fetch(pages, http.MethodGet, path)
		if csp := got.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %q", path, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
			if value := got.Header().Get(name); value != want {
				t.Errorf("%s: %s is %q", path, name, value)
			}
		}
		inline := regexp.MustCompile(`(?i)<style|<script>|<script [^>]*>[^<]|\sstyle=|\son[a-z]+=|javascript:|https?://[^<]*"[^>]*\.(js|css)`)
		if bad := inline.FindString(got.Body.String()); bad != "" && strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s has %q", path, bad)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			if code := fetch(pages, method, path).Code; code != http.StatusMethodNotAllowed && code != http.StatusNotFound {
				t.Errorf("%s %s: HTTP status %d", method, path, code)
			}
		}
	}
	for path, code := range map[string]int{"/nowhere": http.StatusNotFound, "/assets/overview.html": http.StatusNotFound, "/assets/style.css": http.StatusOK} {
		if got := fetch(pages, http.MethodGet, path).Code; got != code {
			t.Errorf("%s: HTTP status %d", path, got)
		}
	}
}

// Everybody can read it: tables have captions and their headers a scope, pictures
// have words, and no state is told by colour alone.
func TestAccessible(t *testing.T) {
	for _, path := range []string{"/", "/clusters/dev", "/webhooks/license-scan/licenses.scan.example.com"} {
		page := fetch(pagesOf(outage), http.MethodGet, path).Body.String()
		if tables, captions := strings.Count(page, "<table"), strings.Count(page, "<caption"); tables == 0 || tables != captions {
			t.Errorf("%s: %d tables and %d captions", path, tables, captions)
		}
		for _, th := range regexp.MustCompile(`<th[ >][^>]*`).FindAllString(page, -1) {
			if !strings.Contains(th, "scope=") {
				t.Errorf("%s: %s has no scope", path, th)
			}
		}
		for _, svg := range regexp.MustCompile(`<svg[^>]*>`).FindAllString(page, -1) {
			if !strings.Contains(svg, "aria-hidden") && !strings.Contains(svg, "aria-label") {
				t.Errorf("%s: %s has no words", path, svg)
			}
		}
		for _, state := range regexp.MustCompile(`(?s)<span class="state [a-z]+"><svg.*?</svg>(.*?)</span>`).FindAllStringSubmatch(page, -1) {
			if strings.TrimSpace(state[1]) == "" {
				t.Errorf("%s: a state without words", path)
			}
		}
		if !strings.Contains(page, `<html lang="en">`) || strings.Count(page, "<h1") != 1 || strings.Count(page, "<main") != 1 {
			t.Errorf("%s lacks a language, one h1 or one main", path)
		}
	}
}

// The document is the Status as it is.
func TestDocument(t *testing.T) {
	got := fetch(pagesOf(outage), http.MethodGet, "/api/v1/status")
	var s status.Status
	if err := json.Unmarshal(got.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outage().FailOpens, s.FailOpens); diff != "" || got.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s %s", got.Header().Get("Content-Type"), diff)
	}
}

// A stranger's site whose name points at loopback reads nothing; a person on the
// same host does, and so does a scraper that comes to the host's address, whatever
// it calls it.
func TestRebound(t *testing.T) {
	metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	handler := admin.New(admin.Config{
		Unready: func() []string { return nil },
		Metrics: metrics,
		Status:  pagesOf(healthy),
		Logger:  slog.New(slog.DiscardHandler),
	}).Handler
	for _, c := range []struct {
		local, host string
		code        int
	}{
		{"127.0.0.1:8081", "localhost:8081", http.StatusOK},
		{"127.0.0.1:8081", "127.0.0.1:8081", http.StatusOK},
		{"[::1]:8081", "[::1]:8081", http.StatusOK},
		{"127.0.0.1:8081", "evil.example:8081", http.StatusMisdirectedRequest},
		{"[::1]:8081", "evil.example", http.StatusMisdirectedRequest},
		{"10.0.0.1:8081", "10.0.0.1:8081", http.StatusOK},
		{"10.0.0.1:8081", "dispatcher.example:8081", http.StatusOK},
	} {
		for _, path := range []string{"/", "/api/v1/status", "/metrics"} {
			local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.local))
			req := httptest.NewRequest(http.MethodGet, path, nil)
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(local)))
			req.Host = c.host
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, req)
			if got.Code != c.code {
				t.Errorf("%s of %s at %s: %d, want %d", path, c.host, c.local, got.Code, c.code)
			}
		}
	}
}

// Where a certificate is required, probes need none and everything else does.
func TestCertificateRequired(t *testing.T) {
	handler := admin.New(admin.Config{
		Unready:             func() []string { return nil },
		Status:              pagesOf(healthy),
		CertificateRequired: true,
		Logger:              slog.New(slog.DiscardHandler),
	}).Handler
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
	for open, code := range map[bool]int{true: http.StatusOK, false: http.StatusForbidden} {
		got := fetch(admin.New(admin.Config{
			Unready: func() []string { return nil }, Metrics: pagesOf(healthy), CertificateRequired: true, OpenMetrics: open, Logger: slog.New(slog.DiscardHandler),
		}).Handler, http.MethodGet, "/metrics")
		if got.Code == http.StatusNotFound { // of what stands in for the metrics
			got.Code = http.StatusOK
		}
		if got.Code != code {
			t.Errorf("openMetrics %v: HTTP status %d, want %d", open, got.Code, code)
		}
	}
	for _, c := range []struct {
		path string
		tls  *tls.ConnectionState
		code int
	}{
		{"/livez", nil, http.StatusOK},
		{"/readyz", &tls.ConnectionState{}, http.StatusOK},
		{"/", nil, http.StatusForbidden},
		{"/", &tls.ConnectionState{}, http.StatusForbidden},
		{"/api/v1/status", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, http.StatusForbidden},
		{"/livez/../", &tls.ConnectionState{}, http.StatusForbidden},
		{"/", verified, http.StatusOK},
		{"/api/v1/status", verified, http.StatusOK},
	} {
		req := httptest.NewRequestWithContext(context.Background(), http.MethodGet, c.path, nil)
		req.TLS = c.tls
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, req)
		if got.Code != c.code {
			t.Errorf("%s: HTTP status %d, want %d", c.path, got.Code, c.code)
		}
	}
}
