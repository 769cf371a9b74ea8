// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
)

// world is one etcd with the clusters on it, and what they call. Its webhooks
// answer by path, as the test that runs says.
type world struct {
	programs programs
	dir      string
	pki      *authority
	etcd     *process
	etcdURL  string
	front    *front
	webhooks *webhooks

	east, west *cluster // behind the dispatcher
	alone      *cluster // calls webhooks itself
}

func newWorld(dir string) (*world, error) {
	w := &world{dir: dir}
	var err error
	if w.programs, err = build(); err != nil {
		return w, err
	}
	if w.pki, err = newAuthority(dir); err != nil {
		return w, err
	}
	if _, err = w.pki.issue("serving"); err != nil {
		return w, err
	}
	if w.front, err = newFront(); err != nil {
		return w, err
	}
	if w.webhooks, err = newWebhooks(w.pki); err != nil {
		return w, err
	}
	if w.etcd, w.etcdURL, err = startEtcd(dir, w.programs.etcd); err != nil {
		return w, err
	}
	return w, w.startClusters()
}

// startClusters starts the three kube-apiservers at the same time.
func (w *world) startClusters() error {
	if err := os.WriteFile(w.pki.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	if _, err := w.pki.issue("service-accounts"); err != nil {
		return err
	}
	var errs [3]error
	done := make(chan struct{})
	for i, c := range []struct {
		name   string
		caller string
		into   **cluster
	}{{"east", "east", &w.east}, {"west", "west", &w.west}, {"alone", "", &w.alone}} {
		go func() {
			defer func() { done <- struct{}{} }()
			*c.into, errs[i] = w.startCluster(clusterOptions{name: c.name, caller: c.caller})
		}()
	}
	for range errs {
		<-done
	}
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("start the clusters: %w", err)
	}
	progress("three kube-apiservers are ready")
	return nil
}

func (w *world) close() {
	for _, c := range []*cluster{w.east, w.west, w.alone} {
		c.close()
	}
	w.etcd.end()
	if w.webhooks != nil {
		w.webhooks.close()
	}
	if w.front != nil {
		w.front.close()
	}
}
