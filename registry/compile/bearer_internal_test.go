// SPDX-License-Identifier: Apache-2.0

package compile

// MaxBearers is maxBearers.
const MaxBearers = maxBearers

// Remembered returns how many tokens of a cluster are remembered.
func Remembered(s *Compiled, cluster string) int { return len(s.bearers[cluster].good) }
