// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
)

var (
	documents = flag.Int64("documents", 2000, "how many reviews TestDocuments composes; 20000000 take twenty minutes on two cores")
	seed      = flag.Uint64("seed", 1, "where TestDocuments begins")
)

// TestDocuments is FuzzComposed without the fuzzing engine, which costs more than the
// check: reviews composed at random, two of three with one edit, held against jsontext
// for what is JSON and against encoding/json and apimachinery for what it says.
func TestDocuments(t *testing.T) {
	var next, accepted atomic.Int64
	t.Run("workers", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1); i <= *documents; i = next.Add(1) {
					if checkDecode(t, document(rand.New(rand.NewPCG(*seed, uint64(i))))) {
						accepted.Add(1)
					}
				}
			})
		}
	})
	if n := accepted.Load(); n < *documents/5 {
		t.Errorf("%d of %d accepted: the oracles have little to say", n, *documents)
	}
	t.Logf("%d of %d accepted", accepted.Load(), *documents)
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
	return edit(c.text, rnd)
}
