// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// dispatcher is one process of the shipped binary with a registry of its own.
type dispatcher struct {
	world   *world
	dir     string
	process *process.Process
	address string
}

// clusters of a registry, unless a test has others.
const clusters = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east, labels: {env: dev}}
spec: {authentication: {certificate: {commonNames: [east]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: west, labels: {env: prod}}
spec: {authentication: {certificate: {commonNames: [west]}}}
`

const processConfiguration = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
tls: {certFile: %[1]s/serving.crt, keyFile: %[1]s/serving.key, clientCAFile: %[1]s/ca.crt}
registration: {url: "https://%[2]s", caFile: %[1]s/ca.crt}
sources: [{directory: registry}]
fileRoots: [%[1]s]
reloadInterval: 100ms
allowedNetworks: ["127.0.0.0/8"]
lameDuck: 2s
# Every denial is compared, however busy the machine is.
deadline: {grace: 2s}
`

// registry writes the manifests of a dispatcher to be, and the configuration of
// its process. $URL and $CA in a manifest are the webhooks' own.
func (w *world) registry(manifests ...string) (*dispatcher, error) {
	dir, err := os.MkdirTemp(w.dir, "dispatcher-")
	if err != nil {
		return nil, err
	}
	d := &dispatcher{world: w, dir: dir}
	if err := os.Mkdir(filepath.Join(dir, "registry"), 0o700); err != nil {
		return nil, err
	}
	if err := d.write("dispatcher.yaml", fmt.Sprintf(processConfiguration, w.dir, w.front.address())); err != nil {
		return nil, err
	}
	if err := d.write("registry/clusters.yaml", clusters); err != nil {
		return nil, err
	}
	for i, m := range manifests {
		if err := d.write(fmt.Sprintf("registry/%d.yaml", i), w.fill(m)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fill puts the webhooks' address into a manifest.
func (w *world) fill(manifest string) string {
	return strings.NewReplacer("$URL", w.webhooks.URL, "$CA", base64.StdEncoding.EncodeToString(w.pki.PEM)).Replace(manifest)
}

func (d *dispatcher) write(name, text string) error {
	return os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600)
}

// run runs a subcommand and returns what it prints.
func (d *dispatcher) run(args ...string) ([]byte, error) {
	out, err := exec.Command(d.world.programs.dispatcher, args...).Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return out, fmt.Errorf("dispatcher %s: %w\n%s%s", strings.Join(args, " "), err, out, exit.Stderr)
	}
	return out, err
}

// registration prints what a cluster applies. Twice is the same.
func (d *dispatcher) registration(cluster string, flags ...string) (string, error) {
	args := append([]string{"registration", "--config", filepath.Join(d.dir, "dispatcher.yaml"), "--cluster", cluster}, flags...)
	first, err := d.run(args...)
	if err != nil {
		return "", err
	}
	second, err := d.run(args...)
	if err == nil && string(first) != string(second) {
		err = fmt.Errorf("printed twice, the registration differs:\n%s\n%s", first, second)
	}
	return string(first), err
}

// serve starts the process and returns when it serves.
func (d *dispatcher) serve() error {
	var err error
	if d.process, err = start(d.dir, d.world.programs.dispatcher, "serve", "--config", "dispatcher.yaml"); err != nil {
		return err
	}
	d.address, _, err = d.process.Serving()
	return err
}

// dispatch starts a dispatcher with these manifests before the given clusters,
// with what it printed registered there, until the test ends.
func dispatch(t *testing.T, behind []*cluster, manifests ...string) *dispatcher {
	t.Helper()
	return dispatchAs(t, clusters, behind, manifests...)
}

// dispatchAs is dispatch with Clusters of the test's own.
func dispatchAs(t *testing.T, clusters string, behind []*cluster, manifests ...string) *dispatcher {
	t.Helper()
	progress("%s", t.Name())
	d, err := shared.registry(append(manifests, readiness)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write("registry/clusters.yaml", clusters); err != nil {
		t.Fatal(err)
	}
	if err := d.serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the dispatcher's log ends:\n%s", d.process.Tail())
		}
		d.process.End()
	})
	shared.front.point(d.address)
	t.Cleanup(func() { shared.front.point("") })
	for _, c := range behind {
		registration, err := d.registration(c.name)
		if err != nil {
			t.Fatal(err)
		}
		c.register(t, registration)
	}
	return d
}
