// SPDX-License-Identifier: Apache-2.0

//go:build !race

package webhook

// composedAnswers is how many answers TestComposedAnswers composes by default.
const composedAnswers = 20_000

const raced = false
