// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
)

const manifests = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks:
  - name: policy.example.com
    clientConfig: {url: %q, caBundle: %s}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
    sideEffects: None
    admissionReviewVersions: [v1]
`

// pod is a replica as a kubelet would run it, but for its addresses: its files are below
// a directory, and its ports are free ones of loopback.
type pod struct {
	dir              string
	container        core.Container
	process          *process.Process
	admission, admin string
	authority        *pki.Authority
}

// TestRun runs the binary with the volumes, arguments and environment that the chart
// renders, asks what its probes ask, has a review judged over TLS, and ends it.
func TestRun(t *testing.T) {
	authority, operators := newAuthority(t, "clients"), newAuthority(t, "operators")
	webhooks := scripted.Serve(certificate(t, authority, "webhook"))
	defer webhooks.Close()
	webhooks.Handle("/deny", func(c *scripted.Call) { c.Respond(`"allowed": false, "status": {"message": "not here"}`) })
	made := mustRender(t, map[string]any{
		"cpu": "2500m",
		"tls": map[string]any{"authorities": map[string]any{"clients": string(authority.PEM), "operators": string(operators.PEM)}},
		"registry": map[string]any{"manifests": map[string]any{
			"all.yaml": fmt.Sprintf(manifests, webhooks.URL+"/deny", base64.StdEncoding.EncodeToString(authority.PEM)),
		}},
		"configuration": map[string]any{"allowedNetworks": []any{"127.0.0.0/8"}},
	})
	p := startPod(t, made, authority)

	kubelet, operator := client(t, tls.Certificate{}), client(t, certificate(t, operators, "someone"))
	for what, probe := range map[string]*core.Probe{"startup": p.container.StartupProbe, "readiness": p.container.ReadinessProbe, "liveness": p.container.LivenessProbe} {
		if code, body := p.probe(t, kubelet, probe); code != http.StatusOK {
			t.Errorf("%s: HTTP status %d: %s", what, code, body)
		}
	}
	if code, _ := get(t, kubelet, "https://"+p.admin+"/metrics"); code == http.StatusOK {
		t.Error("everybody sees the metrics")
	}
	if code, body := get(t, operator, "https://"+p.admin+"/metrics"); code != http.StatusOK || !strings.Contains(body, "\ngo_sched_gomaxprocs_threads 3\n") {
		t.Errorf("metrics: HTTP status %d, or GOMAXPROCS is not the request of CPU, rounded up", code)
	}
	caller := client(t, certificate(t, authority, "east"))
	if denied, last := p.denies(t, caller); !denied || last {
		t.Errorf("denied %v, connection closed %v", denied, last)
	}

	// As a kubelet ends it: it serves on, is not ready, and sends callers away.
	p.process.Signal(syscall.SIGTERM)
	lameDuck, err := p.process.Await(func(line string) string {
		var record struct{ Msg, LameDuck string }
		_ = json.Unmarshal([]byte(line), &record)
		if record.Msg != "stopping" {
			return ""
		}
		return record.LameDuck
	})
	if err != nil || lameDuck != "1m35s" {
		t.Errorf("it serves on for %q, %v", lameDuck, err)
	}
	if code, body := p.probe(t, kubelet, p.container.ReadinessProbe); code != http.StatusServiceUnavailable || !strings.Contains(body, "stopping") {
		t.Errorf("it is told to stop, and ready: %d, %s", code, body)
	}
	if code, _ := p.probe(t, kubelet, p.container.LivenessProbe); code != http.StatusOK {
		t.Error("it is told to stop, and not alive: it would be killed")
	}
	for _, c := range []*http.Client{caller, client(t, certificate(t, authority, "east"))} {
		if denied, last := p.denies(t, c); !denied || !last {
			t.Errorf("as a lame duck: denied %v, connection closed %v", denied, last)
		}
	}
}

// startPod starts the container of the rendered Deployment and returns when it serves.
func startPod(t *testing.T, made map[string]string, authority *pki.Authority) *pod {
	t.Helper()
	p := &pod{dir: t.TempDir(), authority: authority, container: object[*apps.Deployment](t, made, "deployment.yaml").Spec.Template.Spec.Containers[0]}
	p.mount(t, made)
	args := append([]string{}, p.container.Args...)
	for i := range args {
		args[i] = p.path(args[i])
	}
	config := args[len(args)-1]
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range p.container.Ports {
		listen := fmt.Sprintf("listen: :%d\n", port.ContainerPort)
		if !strings.Contains(string(text), listen) {
			t.Fatalf("nothing listens at port %s:\n%s", port.Name, text)
		}
		text = bytes.Replace(text, []byte(listen), []byte("listen: 127.0.0.1:0\n"), 1)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), args...)
	// As the downward API gives it, with its divisor of 1.
	cmd.Env = []string{fmt.Sprintf("GOMAXPROCS=%d", p.container.Resources.Requests.Cpu().Value())}
	if p.process, err = process.Start(cmd, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("its log ends:\n%s", p.process.Tail())
		}
		p.process.Kill()
	})
	if p.admission, p.admin, err = p.process.Serving(); err != nil {
		t.Fatal(err)
	}
	return p
}

// path returns where a file of the container is here.
func (p *pod) path(of string) string {
	if strings.HasPrefix(of, "/") {
		return filepath.Join(p.dir, of)
	}
	return of
}

// mount writes the files of each volume that is mounted: those of the rendered
// ConfigMaps, and of the Secret for TLS.
func (p *pod) mount(t *testing.T, made map[string]string) {
	t.Helper()
	files := map[string]map[string]string{}
	for template := range made {
		if strings.HasPrefix(template, "configmap") {
			c := object[*core.ConfigMap](t, made, template)
			files["ConfigMap "+c.Name] = c.Data
		}
	}
	serving, err := p.authority.Issue(pki.OnLoopback("dispatcher"))
	if err != nil {
		t.Fatal(err)
	}
	files["Secret admission-dispatcher-tls"] = map[string]string{"tls.crt": string(serving.Certificate), "tls.key": string(serving.Key)}
	sources := map[string]string{}
	for _, v := range object[*apps.Deployment](t, made, "deployment.yaml").Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			sources[v.Name] = "ConfigMap " + v.ConfigMap.Name
		} else {
			sources[v.Name] = "Secret " + v.Secret.SecretName
		}
	}
	for _, m := range p.container.VolumeMounts {
		content, ok := files[sources[m.Name]]
		if !ok {
			t.Fatalf("%s is mounted at %s, and is not there", sources[m.Name], m.MountPath)
		}
		if err := os.MkdirAll(p.path(m.MountPath), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range content {
			if err := os.WriteFile(filepath.Join(p.path(m.MountPath), name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// probe asks what a kubelet asks: over TLS that it does not verify, at a port by name.
func (p *pod) probe(t *testing.T, c *http.Client, probe *core.Probe) (code int, body string) {
	t.Helper()
	at := probe.HTTPGet
	if at.Scheme != core.URISchemeHTTPS || at.Port.StrVal != "admin" {
		t.Fatalf("it asks %v", at)
	}
	return get(t, c, "https://"+p.admin+at.Path)
}

// denies has a ConfigMap judged, and reports whether the connection ends with it.
func (p *pod) denies(t *testing.T, c *http.Client) (denied, last bool) {
	t.Helper()
	const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1",
		"kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "resource": {"group": "", "version": "v1", "resource": "configmaps"},
		"name": "c", "namespace": "shop", "operation": "CREATE", "userInfo": {"username": "someone"},
		"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}}}`
	response, err := c.Post("https://"+p.admission+"/v1/clusters/east/validate?timeout=10s", "application/json", strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Response struct {
			Allowed bool
			Status  struct{ Message string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatalf("HTTP status %s: %v", response.Status, err)
	}
	return !answer.Response.Allowed && strings.Contains(answer.Response.Status.Message, "not here"), response.Close
}
