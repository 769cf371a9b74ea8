// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// programs are the paths of what is run.
type programs struct {
	dispatcher, mirror, forwarder, apiserver, wardle, kubectl, podSecurity, gatekeeper, etcd string
}

// build builds what is not there ready-made, into bin/e2e of the repository,
// where the next run finds it up to date.
func build() (programs, error) {
	dir, err := filepath.Abs("../bin/e2e")
	if err != nil {
		return programs{}, err
	}
	p := programs{
		dispatcher:  filepath.Join(dir, "dispatcher"),
		mirror:      filepath.Join(dir, "dispatcher-kube"),
		forwarder:   filepath.Join(dir, "dispatcher-forward"),
		wardle:      filepath.Join(dir, "sample-apiserver"),
		apiserver:   filepath.Join(dir, "kube-apiserver"),
		kubectl:     filepath.Join(dir, "kubectl"),
		podSecurity: filepath.Join(dir, "pod-security-webhook"),
		gatekeeper:  filepath.Join(dir, "gatekeeper"),
	}
	if p.etcd, err = exec.LookPath("etcd"); err != nil {
		return p, fmt.Errorf("etcd is missing: apt-get install etcd-server: %w", err)
	}
	for _, b := range []struct{ in, out, pkg string }{
		{"..", p.dispatcher, "./cmd/dispatcher"},
		{"..", p.mirror, "./cmd/dispatcher-kube"},
		{"..", p.forwarder, "./cmd/dispatcher-forward"},
		{"kubernetes", p.apiserver, "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kubernetes", p.wardle, "k8s.io/sample-apiserver"},
		{"kubernetes", p.kubectl, "k8s.io/kubernetes/cmd/kubectl"},
		{"kubernetes", p.podSecurity, "k8s.io/pod-security-admission/cmd/webhook"},
		{"gatekeeper", p.gatekeeper, "github.com/open-policy-agent/gatekeeper/v3"},
	} {
		start := time.Now()
		cmd := exec.Command("go", "build", "-C", b.in, "-o", b.out, b.pkg)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return p, fmt.Errorf("build %s: %w", b.pkg, err)
		}
		progress("built %s in %.0fs", filepath.Base(b.out), time.Since(start).Seconds())
	}
	return p, nil
}
