// SPDX-License-Identifier: Apache-2.0

//go:build race

package app_test

// raceEnabled tells that the race detector is on: pools then drop what they like,
// and everything takes ten times as long.
const raceEnabled = true
