// SPDX-License-Identifier: Apache-2.0

//go:build race

package webhook

// composedAnswers is small with the race detector, which takes 20 times as long
// and looks for something else.
const composedAnswers = 1_000

const raced = true
