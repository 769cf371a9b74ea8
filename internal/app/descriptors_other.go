// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package app

// descriptorLimit is not known where there is no such limit.
func descriptorLimit() int { return 0 }
