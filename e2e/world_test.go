// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// world is one etcd with the clusters on it, and what they call. Its webhooks
// answer by path, as the test that runs says.
type world struct {
	programs programs
	dir      string
	pki      *pki.Authority
	etcd     *process.Process
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
	if w.pki, err = pki.NewAuthority("e2e"); err != nil {
		return w, err
	}
	if err := os.WriteFile(w.path("ca.crt"), w.pki.PEM, 0o600); err != nil {
		return w, err
	}
	if _, err = w.issue("serving"); err != nil {
		return w, err
	}
	if w.front, err = newFront(); err != nil {
		return w, err
	}
	if w.webhooks, err = newWebhooks(w); err != nil {
		return w, err
	}
	if w.etcd, w.etcdURL, err = startEtcd(dir, w.programs.etcd); err != nil {
		return w, err
	}
	return w, w.startClusters()
}

// startClusters starts the three kube-apiservers at the same time.
func (w *world) startClusters() error {
	if err := os.WriteFile(w.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	if _, err := w.issue("service-accounts"); err != nil {
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
	if w.etcd != nil {
		w.etcd.End()
	}
	if w.webhooks != nil {
		w.webhooks.Close()
	}
	if w.front != nil {
		w.front.close()
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// issue writes name.crt and name.key for a name that serves on 127.0.0.1 and calls.
func (w *world) issue(name string, dnsNames ...string) (tls.Certificate, error) {
	pair, err := w.pki.Issue(pki.OnLoopback(name, dnsNames...))
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := pair.Write(w.dir, name); err != nil {
		return tls.Certificate{}, err
	}
	return pair.TLS()
}

// start starts a program in a directory.
func start(dir, program string, args ...string) (*process.Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	return process.Start(cmd, nil)
}

// freePort returns a port that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
