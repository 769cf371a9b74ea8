// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"math/rand/v2"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// TestDocuments holds Decode against its oracles on reviews composed at random, two
// of three with one edit.
func TestDocuments(t *testing.T) {
	const documents = 2000
	accepted := 0
	for i := range uint64(documents) {
		if checkDecode(t, document(rand.New(rand.NewPCG(1, i)))) {
			accepted++
		}
	}
	if accepted < documents/5 {
		t.Errorf("%d of %d accepted: the oracles have little to say", accepted, documents)
	}
}

// document composes a review, and perhaps edits it.
func document(rnd *rand.Rand) []byte {
	choices := make([]byte, 20+rnd.IntN(140))
	spread := 1 + rnd.IntN(256)
	for i := range choices {
		choices[i] = byte(rnd.IntN(spread))
	}
	c := composer{choices: choices}
	c.review()
	if rnd.IntN(3) == 0 {
		return c.text
	}
	return fuzz.Edit(c.text, c.text, rnd)
}
