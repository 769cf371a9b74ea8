// SPDX-License-Identifier: Apache-2.0

//go:build race

package celenv

// raceEnabled tells that the race detector is on: pools then drop what they like,
// and everything takes ten times as long.
const raceEnabled = true
