// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// cores is a set of processors.
type cores = unix.CPUSet

// split returns the first processor, for the process under test, and all others.
func split() (one, others cores, err error) {
	if err := unix.SchedGetaffinity(0, &others); err != nil {
		return one, others, err
	}
	if others.Count() < 2 {
		return one, others, errors.New("there is one processor only: the process under test needs one for itself")
	}
	first := 0
	for !others.IsSet(first) {
		first++
	}
	one.Set(first)
	others.Clear(first)
	return one, others, nil
}

// startOn starts a process on the given processors: a child is born where the thread
// is that starts it, which is to do nothing else.
func startOn(cmd *exec.Cmd, on cores) error {
	if err := unix.SchedSetaffinity(0, &on); err != nil {
		return err
	}
	return cmd.Start()
}

// moveTo moves all threads of this process, and those to come.
func moveTo(on cores) error {
	// Twice: a thread that is being born has its parent's processors.
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, &on); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

func union(a, b cores) cores {
	for i := range a {
		a[i] |= b[i]
	}
	return a
}
