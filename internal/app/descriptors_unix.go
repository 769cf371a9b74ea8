// SPDX-License-Identifier: Apache-2.0

//go:build unix

package app

import "syscall"

// descriptorLimit is how many files and connections the process may have open; 0
// if it is not known.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}
