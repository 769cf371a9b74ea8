// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// fake is the API of a cluster, as far as lint and adopt ask it: each page has one object.
type fake struct {
	server    *httptest.Server
	objects   map[string][]string // as JSON, by the end of the path
	forbidden string              // the end of a path

	mu    sync.Mutex
	asked []string // methods and paths
}

func newFake(t *testing.T, objects map[string][]string) *fake {
	f := &fake{objects: objects}
	f.server = httptest.NewTLSServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.server.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	status := func(code int, reason string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "reason": %q, "message": %q}`, code, reason, reason)
	}
	if f.forbidden != "" && strings.HasSuffix(r.URL.Path, f.forbidden) {
		status(http.StatusForbidden, "Forbidden")
		return
	}
	list, ok := f.objects[r.URL.Path]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.Contains(r.URL.Path, "/services/") && ok:
		_, _ = w.Write([]byte(list[0]))
	case strings.Contains(r.URL.Path, "/services/"):
		status(http.StatusNotFound, "NotFound")
	default:
		n := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &n)
		page := map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{}}
		if n < len(list) {
			page["items"] = []any{json.RawMessage(list[n])}
			if n+1 < len(list) {
				page["metadata"] = map[string]any{"continue": fmt.Sprint(n + 1)}
			}
		}
		_ = json.NewEncoder(w).Encode(page)
	}
}

// kubeconfig writes one for the fake.
func (f *fake) kubeconfig(t *testing.T) string {
	t.Helper()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw}))
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}], "users": [{"name": "u", "user": {"token": "a-token"}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}`, f.server.URL, ca)
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func try(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// hooked is a configuration whose webhook is served by a Service.
func hooked(name, service, more string) string {
	return fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": %q}, "webhooks": [{"name": "a.example.com",
		"clientConfig": {"service": {"namespace": "policies", "name": %q, "port": 443}}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail"%s,
		"rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"], "scope": "*"}]}]}`, name, service, more)
}

const (
	configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	endpoints      = "/apis/discovery.k8s.io/v1/namespaces/policies/endpointslices"
	services       = "/api/v1/namespaces/policies/services/"
)

func world() map[string][]string {
	service := func(name string) []string {
		return []string{fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "policies", "name": %q}, "spec": {}}`, name)}
	}
	return map[string][]string{
		configurations:    {hooked("down", "down", ""), hooked("gone", "gone", ""), hooked("left", "gone", `, "matchConditions": [{"name": "dispatched", "expression": "false"}]`)},
		services + "down": service("down"),
		"/apis/apiregistration.k8s.io/v1/apiservices": {`{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.example.com"}, "spec": {"group": "example.com", "service": {"namespace": "x", "name": "y"}}}`},
	}
}

// A cluster is read page by page, with GET alone; a Service without a ready endpoint and
// one that is not there are found, and a webhook that is never called is left alone (W7).
func TestLintOfACluster(t *testing.T) {
	f := newFake(t, world())
	code, out, errs := try("lint", "--kubeconfig", f.kubeconfig(t), "-o", "json")
	if code != 1 || errs != "" {
		t.Fatalf("%d %s", code, errs)
	}
	for _, want := range []string{"has no ready endpoint", `"ValidatingWebhookConfiguration/down"`, "is not there", `"ValidatingWebhookConfiguration/gone"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	if strings.Contains(out, "ValidatingWebhookConfiguration/left") {
		t.Errorf("a webhook that is never called is found: %s", out)
	}
	if slices.ContainsFunc(f.asked, func(q string) bool { return !strings.HasPrefix(q, "GET ") }) {
		t.Errorf("%v", f.asked)
	}
	f.forbidden = endpoints
	if _, out, errs := try("lint", "--kubeconfig", f.kubeconfig(t)); !strings.Contains(errs, "note: services") || strings.Contains(out, "has no ready endpoint") {
		t.Errorf("without a right: %s %s", out, errs)
	}
	f.forbidden = configurations
	if code, _, errs := try("lint", "--kubeconfig", f.kubeconfig(t)); code != 1 || !strings.Contains(errs, "list validatingwebhookconfigurations") {
		t.Errorf("%d %s", code, errs)
	}
}

// With the dispatcher's configuration, what is called twice, what nobody calls, a
// registration that is not there, and an extension server without a caller are found (W8).
func TestLintComparesWithTheRegistry(t *testing.T) {
	f := newFake(t, world())
	directory := t.TempDir()
	authority, err := pki.NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.Own()
	if err == nil {
		err = own.Write(filepath.Dir(directory), "serving")
	}
	if err != nil {
		t.Fatal(err)
	}
	certificate := filepath.Join(filepath.Dir(directory), "serving")
	registered := "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n  authentication: {certificate: {commonNames: [prod]}}\n  services: [{names: [\"*/*\"], gateway: \"gateway.example.com:443\"}]\n---\n" +
		strings.Replace(hooked("prod.down", "down", ""), `"metadata": {`, `"metadata": {"annotations": {"dispatcher.dev/cluster": "prod"}, `, 1) + "\n"
	for name, text := range map[string]string{
		"registry.yaml": registered, "../dispatcher.yaml": "apiVersion: dispatcher.dev/v1alpha1\nkind: DispatcherConfiguration\ntls: {certFile: " + certificate + ".crt, keyFile: " + certificate + ".key, clientCAFile: " + certificate + ".crt}\nsources: [{directory: " + directory + "}]\nregistration: {url: https://dispatcher.example.com}\n",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, out, errs := try("lint", "--kubeconfig", f.kubeconfig(t), "--config", filepath.Join(directory, "../dispatcher.yaml"), "--cluster", "prod", "-o", "json")
	for _, want := range []string{"each request goes to it twice", "nobody does", "is not registered", "no caller of the Cluster serves group example.com"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s %s", want, out, errs)
		}
	}
	if n := strings.Count(out, "each request goes to it twice"); n != 1 {
		t.Errorf("%d are called twice", n)
	}
}

// Adopt prints and writes, and the order of steps; it sends GET alone.
func TestAdopt(t *testing.T) {
	f := newFake(t, world())
	directory := filepath.Join(t.TempDir(), "out")
	code, out, errs := try("adopt", "--cluster", "prod", "--kubeconfig", f.kubeconfig(t), "--directory", directory)
	if code != 0 || !strings.Contains(errs, "not adopted: ValidatingWebhookConfiguration/left: is left to the dispatcher already") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	names, err := os.ReadDir(directory)
	if err != nil || len(names) != 7 {
		t.Fatal(names, err)
	}
	steps, err := os.ReadFile(filepath.Join(directory, "STEPS.txt"))
	if err != nil || !strings.Contains(string(steps), "kubectl patch validatingwebhookconfiguration down --type=strategic --patch-file neutralise-validating-down.json") {
		t.Errorf("%s %v", steps, err)
	}
	if code, _, _ := try("adopt", "--cluster", "prod", "--kubeconfig", f.kubeconfig(t), "--directory", directory); code != 1 {
		t.Error("it writes over what is there")
	}
	if _, out, _ := try("adopt", "--cluster", "prod", "--kubeconfig", f.kubeconfig(t), "--configuration", "gone"); strings.Contains(out, "name: prod.down") || !strings.Contains(out, "name: prod.gone") {
		t.Error(out)
	}
	if code, _, errs := try("adopt", "--cluster", "prod", "--kubeconfig", f.kubeconfig(t), "--configuration", "absent"); code != 1 || !strings.Contains(errs, `"absent"`) {
		t.Errorf("%d %s", code, errs)
	}
	if slices.ContainsFunc(f.asked, func(q string) bool { return !strings.HasPrefix(q, "GET ") }) {
		t.Errorf("%v", f.asked)
	}
}

// A command line that is wrong ends with 2; rights are printed without a cluster.
func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{}, {"other"}, {"lint"}, {"adopt", "--cluster", "a"}, {"lint", "--kubeconfig", "a", "--config", "b"}, {"adopt", "--cluster", "a", "--kubeconfig", "b", "c"}} {
		if code, _, errs := try(args...); code != 2 || errs == "" {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
	code, out, _ := try("lint", "--rbac", "--rbac-user", "ann")
	if code != 0 || !strings.Contains(out, `name: "ann"`) {
		t.Errorf("%d %s", code, out)
	}
	for _, verb := range []string{"create", "update", "patch", "delete", "*", "watch"} {
		if strings.Contains(out, `"`+verb+`"`) {
			t.Errorf("it asks for the right to %s", verb)
		}
	}
}
