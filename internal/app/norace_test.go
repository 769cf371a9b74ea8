// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app_test

const raceEnabled = false
