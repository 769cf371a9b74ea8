// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import "syscall"

// onDebug calls toggle at each SIGUSR1 until stop.
func onDebug(toggle func()) (stop func()) { return on(syscall.SIGUSR1, toggle) }
