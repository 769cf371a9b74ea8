// SPDX-License-Identifier: Apache-2.0

// Package quantity bounds the quantities of Kubernetes that users may write: what such a
// text of a few bytes stands for may take minutes to compute with, or to decode.
package quantity

import (
	"strconv"
	"strings"
)

const (
	maxText     = 256 // bytes
	maxExponent = 100
)

// IsBound reports whether the text is short, with an exponent that is small if it has one.
// One that is bound, and is a quantity, is decoded, added and compared at once.
func IsBound(text string) bool {
	exponent, ok := exponentOf(text)
	return ok && -maxExponent <= exponent && exponent <= maxExponent
}

// isDecodable reports whether it takes no time to find out what a text is. Not to round what
// is large is what takes none, however large it is.
func isDecodable(text string) bool {
	exponent, ok := exponentOf(text)
	return ok && -maxExponent <= exponent
}

// exponentOf returns the exponent of a text, 0 for one that has none; ok is false for one
// that is too long.
func exponentOf(text string) (exponent int64, ok bool) {
	if len(text) > maxText {
		return 0, false
	}
	at := strings.LastIndexAny(text, "eE")
	if at < 0 || at == len(text)-1 { // the last is Exa
		return 0, true
	}
	exponent, err := strconv.ParseInt(text[at+1:], 10, 64)
	if err != nil { // what is no number is no quantity, and one beyond int64 is none either
		return 0, true
	}
	return exponent, true
}
