// SPDX-License-Identifier: Apache-2.0

package command

// IsTerminal is isTerminal.
var IsTerminal = isTerminal
