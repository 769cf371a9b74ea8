// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
)

// played is an admission of an earlier release: a line of its admissions.jsonl.
type played struct {
	About    string                     `json:"about"`
	Cluster  string                     `json:"cluster"` // whose path is called
	As       string                     `json:"as"`      // whose certificate is shown
	Phase    string                     `json:"phase"`
	Review   json.RawMessage            `json:"review"`
	Webhooks map[string]json.RawMessage `json:"webhooks"` // response by path, "hang", or a status code
	Want     *verdict                   `json:"want"`     // what that release said
}

// verdict is what a caller sees of an answer.
type verdict struct {
	Status   int             `json:"status"`
	Allowed  bool            `json:"allowed,omitempty"`
	Code     int             `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Patch    json.RawMessage `json:"patch,omitempty"`
}

// releaseCallers are how the clusters of the quickstart prove who they are.
var releaseCallers = map[string]pki.Subject{
	"dev":     {CommonName: "kube-apiserver.dev.example.com"},
	"staging": {CommonName: "kube-apiserver", DNSNames: []string{"kube-apiserver.staging.example.com"}},
	"prod":    {CommonName: "kube-apiserver", URIs: []string{"spiffe://example.com/cluster/prod/kube-apiserver"}},
}

// endpoints points the Services of the manifests at the scripted webhooks.
const endpoints = `apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: endpoints}
spec:
  webhooks: ["*/*"]
  endpoints: [{address: %q, caFile: ../secrets/ca.crt, serverName: webhooks.example.com}]
`

// TestReleases: with the configuration of an earlier release, every field of it set, the
// binary of today starts, and judges as that release did. What a release has left here
// is never rewritten; -update writes what a new one says.
func TestReleases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/releases/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no releases: %v", err)
	}
	program := binary(t)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Run("directory", func(t *testing.T) { replay(t, program, dir, "registry") })
			t.Run("mirror", func(t *testing.T) { replay(t, program, dir, "mirror/current") })
		})
	}
}

// replay plays the admissions of a release with its registry, or with its objects as a
// mirror of an API publishes them.
func replay(t *testing.T, program, dir, registry string) {
	authority := newAuthority(t, "release")
	webhooks := scripted.Serve(issue(t, authority, pki.OnLoopback("webhooks", "webhooks.example.com")))
	defer webhooks.Close()
	admissions := readAdmissions(t, filepath.Join(dir, "admissions.jsonl"))
	answer := answers(admissions)
	for _, path := range []string{"/images", "/owner", "/replicas", "/labels", "/licenses"} {
		webhooks.Handle(path, answer)
	}

	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if registry != "registry" {
		if err := os.CopyFS(filepath.Join(root, registry), os.DirFS(filepath.Join(dir, "objects"))); err != nil {
			t.Fatal(err)
		}
		change(t, filepath.Join(root, "dispatcher.yaml"), "- directory: registry\n", "- mirror: mirror\n")
	}
	// The generation names its files from where it lies.
	named := strings.Replace(endpoints, "../secrets", strings.Repeat("../", strings.Count(registry, "/")+1)+"secrets", 1)
	writeFile(t, filepath.Join(root, registry, "endpoints.yaml"), fmt.Sprintf(named, webhooks.Address()))
	for _, made := range []string{"tls/clients.crt", "tls/operators.crt", "tls/serving-ca.crt", "secrets/ca.crt"} {
		writeFile(t, filepath.Join(root, made), string(authority.PEM))
	}
	for _, name := range []string{"tls", "admin"} {
		pair, err := authority.Issue(pki.OnLoopback(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.Write(filepath.Join(root, "tls"), name); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(program, "validate", "--config", filepath.Join(root, "dispatcher.yaml")).CombinedOutput(); err != nil {
		t.Fatalf("validate: %v\n%s", err, out)
	}
	p, err := process.Start(exec.Command(program, "serve", "--config", filepath.Join(root, "dispatcher.yaml")), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	address, _, err := p.Serving()
	if err != nil {
		t.Fatal(err)
	}
	for i := range admissions {
		a := &admissions[i]
		got := ask(t, callerOf(t, authority, a.As), address, a)
		if a.Want == nil && *update {
			a.Want = got
		}
		if diff := cmp.Diff(a.Want, got); diff != "" {
			t.Errorf("%s: that release (-), this binary (+):\n%s", a.About, diff)
		}
	}
	if *update && registry == "registry" {
		writeAdmissions(t, filepath.Join(dir, "admissions.jsonl"), admissions)
	}
}

// answers has each webhook answer as it did about a review.
func answers(admissions []played) scripted.Answer {
	var mu sync.Mutex
	said := map[string]json.RawMessage{}
	for _, a := range admissions {
		var review struct{ Request struct{ UID string } }
		_ = json.Unmarshal(a.Review, &review) // whoever sends it finds out
		for path, answer := range a.Webhooks {
			said[review.Request.UID+path] = answer
		}
	}
	return func(c *scripted.Call) {
		mu.Lock()
		answer, ok := said[c.UID()+c.Request.URL.Path]
		mu.Unlock()
		switch {
		case !ok || string(answer) == `"500"`:
			c.Send(http.StatusInternalServerError, nil)
		case string(answer) == `"hang"`:
			c.Hang()
		default:
			c.Respond(strings.TrimSuffix(strings.TrimPrefix(string(answer), "{"), "}"))
		}
	}
}

func callerOf(t *testing.T, authority *pki.Authority, cluster string) *http.Client {
	t.Helper()
	return client(t, issue(t, authority, releaseCallers[cluster]))
}

// comparable is the text without what differs between two runs, which is how long it took, and
// between two releases: since 0.2 the configuration is named where a call failed.
func comparable(text string) string {
	return configuration.ReplaceAllString(duration.ReplaceAllString(text, "?s"), "$1)")
}

var (
	duration      = regexp.MustCompile(`\b[0-9.]+m?s\b`)
	configuration = regexp.MustCompile(`(\(\w+ after \?s), [-\w.]+/[-\w.]+\)`)
)

// ask sends the review and returns the verdict.
func ask(t *testing.T, c *http.Client, address string, a *played) *verdict {
	t.Helper()
	response, err := c.Post(fmt.Sprintf("https://%s/v1/clusters/%s/%s?timeout=10s", address, a.Cluster, a.Phase), "application/json", bytes.NewReader(a.Review))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	v := &verdict{Status: response.StatusCode}
	if v.Status != http.StatusOK {
		return v
	}
	var review struct {
		Response struct {
			Allowed bool
			Status  struct {
				Code    int
				Message string
			}
			Warnings []string
			Patch    []byte
		}
	}
	if err := json.Unmarshal(text, &review); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	r := review.Response
	v.Allowed, v.Code, v.Message, v.Patch = r.Allowed, r.Status.Code, comparable(r.Status.Message), r.Patch
	for _, w := range r.Warnings {
		v.Warnings = append(v.Warnings, comparable(w))
	}
	return v
}

func readAdmissions(t *testing.T, file string) (list []played) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var a played
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

func writeAdmissions(t *testing.T, file string, list []played) {
	t.Helper()
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for _, a := range list {
		if err := lines.Encode(a); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, file, text.String())
}

// change replaces what a file has.
func change(t *testing.T, file, old, text string) {
	t.Helper()
	had, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(had, []byte(old)) {
		t.Fatalf("%s does not have %q: %v", file, old, err)
	}
	writeFile(t, file, strings.Replace(string(had), old, text, 1))
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
