// SPDX-License-Identifier: Apache-2.0

package sample

import "testing"

func TestLimit(t *testing.T) {
	if got := Limit(7, 5); got != 5 {
		t.Error(got)
	}
	if got := Limit(3, 5); got != 3 {
		t.Error(got)
	}
}

func TestJoin(t *testing.T) {
	if got := Join("a", "b"); got != "a+b" {
		t.Error(got)
	}
}

func TestRounds(t *testing.T) {
	if got := Rounds(3); got != 3 {
		t.Error(got)
	}
}
