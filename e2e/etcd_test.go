// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// startEtcd starts one etcd for all clusters; each has a prefix of its own.
func startEtcd(dir, program string) (*process.Process, string, error) {
	client, err := freePort()
	if err != nil {
		return nil, "", err
	}
	peer, err := freePort()
	if err != nil {
		return nil, "", err
	}
	var clientURL, peerURL = "http://127.0.0.1:" + client, "http://127.0.0.1:" + peer
	p, err := start(dir, program,
		"--data-dir", "etcd", "--unsafe-no-fsync",
		"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
		"--initial-cluster", "default="+peerURL)
	if err != nil {
		return nil, "", err
	}
	err = p.Until("being healthy", func() bool {
		resp, err := http.Get(clientURL + "/health")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p, clientURL, err
}
