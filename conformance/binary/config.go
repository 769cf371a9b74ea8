// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"

	"fmt"
	"os"
	"path/filepath"
)

// The limits are those of a busy machine: no timeout but a webhook's own shall
// decide anything here. Bypasses are off, because kube-apiserver has none.
const processConfig = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: %q
tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: clients.crt}
admin: {listen: %q}
sources: [{directory: registry}]
fileRoots: [.]
reloadInterval: 1h
allowedNetworks: [127.0.0.0/8]
bypass: {defaults: false}
failOpen: {defaults: false}
limits: {connections: 20000}
deadline: {grace: 2s, impatience: 30s}
timeouts: {headers: 30s, body: 30s, connect: 10s}
lameDuck: 0s
log: {level: %s}
registration: {url: "https://%s", caFile: clients.crt}
`

func (o *Options) write(listen, admin string) error {
	serving, err := o.Clients.Issue(pki.OnLoopback("dispatcher"))
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"dispatcher.yaml": fmt.Appendf(nil, processConfig, listen, admin, o.level(), listen),
		"tls.crt":         serving.Certificate,
		"tls.key":         serving.Key,
		"clients.crt":     o.Clients.PEM,
	}
	for name, text := range o.Manifests {
		files[filepath.Join("registry", name)] = text
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "registry"), 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(o.Dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) level() string {
	if o.LogLevel == "" {
		return "error"
	}
	return o.LogLevel
}
