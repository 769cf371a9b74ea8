// SPDX-License-Identifier: Apache-2.0

// Package conformance holds the dispatcher against the API server's own webhook
// plugins, which are the caller and the oracle: each case is decided by a plugin
// that calls the webhooks directly, and by one that calls the shipped binary with
// the same webhooks in its registry.
package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/admission-dispatcher/dispatcher/conformance/binary"
)

var binaryPath string // of the dispatcher, built once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dispatcher-conformance-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if binaryPath, err = binary.Build(context.Background(), dir); err != nil {
		panic(err)
	}
	// Every denial would be logged, and handling an error takes a millisecond.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil
	m.Run()
}

// patience bounds every wait. Nothing is expected to come near it.
const patience = 30 * time.Second

// process is a dispatcher that serves a directory.
type process struct {
	address string
	pid     int
	pki     *authority
}

// serve starts the binary with the manifests in dir/registry and returns when it
// serves. It is ended, and waited for, at the end of the test.
func serve(t *testing.T, dir string) *process {
	t.Helper()
	p := &process{pki: newAuthority(t)}
	write(t, dir, "ca.crt", p.pki.pem)
	p.pki.issue(t, dir, "serving", net.IPv4(127, 0, 0, 1))
	p.pki.issue(t, dir, "caller", nil)
	write(t, dir, "dispatcher.yaml", []byte(configuration))
	cmd := exec.Command(binaryPath, "serve", "--config", filepath.Join(dir, "dispatcher.yaml"))
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	serving, ended := make(chan string, 1), make(chan struct{})
	go func() { defer close(ended); follow(t, log, serving) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
	select {
	case p.address = <-serving:
	case <-ended:
		t.Fatal("the dispatcher ended")
	case <-time.After(patience):
		t.Fatal("the dispatcher does not serve")
	}
	return p
}

// follow reads the log: the address once it serves, and what it refuses.
func follow(t *testing.T, log io.Reader, serving chan<- string) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var record struct{ Msg, Listen, Level string }
		if json.Unmarshal(lines.Bytes(), &record) != nil {
			continue
		}
		switch {
		case record.Msg == "serving":
			serving <- record.Listen
		case record.Level == "ERROR":
			t.Errorf("the dispatcher says: %s", lines.Text())
		}
	}
}

// Bypasses are off: the oracle knows none.
const configuration = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
tls: {certFile: serving.crt, keyFile: serving.key, clientCAFile: ca.crt}
sources: [{directory: registry}]
allowedNetworks: ["127.0.0.0/8"]
bypass: {defaults: false}
lameDuck: 0s
`

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
