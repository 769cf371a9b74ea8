// SPDX-License-Identifier: Apache-2.0

// Package sample has tests that miss some of its mutants.
package sample

// Limit is at most n, and never negative.
func Limit(n, most int) int {
	if n > most {
		n = most
	}
	if n < 0 {
		return 0
	}
	return n
}

// Join is a and b, or nothing.
func Join(a, b string) string {
	if a == "" && b == "" {
		return ""
	}
	return a + "+" + b
}

// Never is called by no test.
func Never(n int) bool { return n == 3 }

// Rounds counts to n.
func Rounds(n int) (rounds int) {
	for rounds != n {
		rounds++
	}
	return rounds
}
