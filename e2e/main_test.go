// SPDX-License-Identifier: Apache-2.0

// Package e2e drives the shipped binary with real kube-apiservers: what clients
// see of their admissions, through the dispatcher and without it.
package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// patience bounds every wait. Nothing is expected to come near it.
const patience = 60 * time.Second

// shared is what all tests use: the programs, one etcd, two clusters behind the
// dispatcher and one that calls its webhooks itself.
var shared *world

func TestMain(m *testing.M) {
	os.Exit(run(m)) //nolint:forbidigo // it is main here
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dispatcher-e2e-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if shared, err = newWorld(dir); err != nil {
		shared.close()
		return failed(err)
	}
	defer shared.close()
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stdout, "e2e:", err)
	return 1
}

var began = time.Now()

// progress tells whoever waits what is being done.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "progress: e2e %5.1fs %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}
