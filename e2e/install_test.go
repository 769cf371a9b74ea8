// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// installNamespace is where the chart's golden files are installed, and where their
// registries are: a dry run makes none. Pod Security says what it has against a Deployment
// in a warning, which is a failure here.
const installNamespace = `apiVersion: v1
kind: Namespace
metadata: {name: admission-dispatcher, labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}}
---
apiVersion: v1
kind: Namespace
metadata: {name: admission-dispatcher-registry}
---
apiVersion: v1
kind: Namespace
metadata: {name: fleet-registry}
`

// TestInstall: kube-apiserver takes every object that the chart renders, for each of its
// value files, and what deploy/kustomize makes, without a warning and with strict
// decoding.
func TestInstall(t *testing.T) {
	progress("%s", t.Name())
	c := shared.alone
	if err := installs(c, installNamespace, "-f", "-"); err != "" {
		t.Fatal(err)
	}
	golden, err := filepath.Glob("../deploy/test/testdata/golden/*.yaml")
	if err != nil || len(golden) < 10 {
		t.Fatalf("%d golden files, %v", len(golden), err)
	}
	for _, file := range golden {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := installs(c, builtIn(string(text)), "--dry-run=server", "-f", "-"); err != "" {
			t.Errorf("%s: %s", file, err)
		}
	}
	for _, dir := range []string{"base", "cell", "api"} {
		if err := installs(c, "", "--dry-run=server", "-k", filepath.Join("../deploy/kustomize", dir)); err != "" {
			t.Errorf("deploy/kustomize/%s: %s", dir, err)
		}
	}
	if err := installs(c, "", "--dry-run=server", "-k", "../deploy/forward"); err != "" {
		t.Errorf("deploy/forward: %s", err)
	}
}

// TestInstallIsJudged: what a kube-apiserver does not take, or warns of, is noticed.
func TestInstallIsJudged(t *testing.T) {
	text, err := os.ReadFile("../deploy/test/testdata/golden/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := installs(shared.alone, installNamespace, "-f", "-"); err != "" {
		t.Fatal(err)
	}
	for _, bad := range []struct{ old, new, want string }{
		{"minReadySeconds: 15", "minReadySecond: 15", "unknown field"},
		{"runAsNonRoot: true", "runAsNonRoot: false", "violate PodSecurity"},
		{`cidr: "::/0"`, `cidr: "::"`, "Invalid value"},
		{"maxSurge: 25%", "maxSurge: 0", "may not be 0"},
	} {
		changed := strings.Replace(string(text), bad.old, bad.new, 1)
		if changed == string(text) {
			t.Fatalf("the golden file does not have %q", bad.old)
		}
		if err := installs(shared.alone, changed, "--dry-run=server", "-f", "-"); !strings.Contains(err, bad.want) {
			t.Errorf("%s: kube-apiserver says %q, not %q", bad.new, err, bad.want)
		}
	}
}

// builtIn returns the objects of a golden file whose kinds every kube-apiserver knows.
func builtIn(text string) string {
	foreign := regexp.MustCompile(`(?m)^apiVersion: (cert-manager\.io|monitoring\.coreos\.com)/`)
	var kept []string
	for object := range strings.SplitSeq(text, "--- # ") {
		if !foreign.MatchString(object) {
			kept = append(kept, object)
		}
	}
	return strings.Join(kept, "--- # ")
}

// installs has kubectl apply text with these arguments, and returns what anybody has
// against it: kubectl, or a warning of kube-apiserver.
func installs(c *cluster, text string, args ...string) string {
	cmd := exec.Command(c.programs.kubectl, append([]string{"--kubeconfig", c.kubeconfig, "apply", "--validate=strict"}, args...)...)
	cmd.Stdin = strings.NewReader(text)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		return strings.TrimSpace(said.String()) + " " + cmd.ProcessState.String()
	}
	return ""
}
