// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package command

// onDebug does nothing: there is no SIGUSR1.
func onDebug(func()) (stop func()) { return func() {} }
