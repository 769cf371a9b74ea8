// SPDX-License-Identifier: Apache-2.0

//go:build unix

package app_test

import (
	"syscall"
	"testing"
)

// Callers never get more than half of the descriptors that the process may open,
// whatever limits.connections says.
func TestCallersLeaveHalfOfTheDescriptors(t *testing.T) {
	const descriptors = 256
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.configure("limits: {connections: 4096}\ntimeouts: {headers: 1m}")
	lowered := before
	lowered.Cur = descriptors
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lowered); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	r.start()
	// The callers are in this process, too.
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	const beyond = 30
	closed := r.closings(descriptors/2 + beyond)
	r.eventually("those beyond are closed", func() bool { return closed.Load() >= beyond })
	if !r.logged("is lowered") {
		t.Error("it is not logged")
	}
}
