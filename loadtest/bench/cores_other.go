// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

type cores struct{}

var errOnlyLinux = errors.New("processes can be pinned, and their CPU read, on Linux only")

func split() (one, others cores, err error) { return one, others, errOnlyLinux }
func startOn(cmd *exec.Cmd, _ cores) error  { return errOnlyLinux }
func moveTo(cores) error                    { return errOnlyLinux }
func union(a, _ cores) cores                { return a }
