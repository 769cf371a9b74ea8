// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// variantsPerInput is how many documents FuzzSyntax makes of an input: the fuzzing
// engine itself costs more than a document does.
const variantsPerInput = 64

// FuzzSyntax holds what the scanner takes for JSON against jsontext, on the input
// and on its neighbours: what one edit makes of it.
func FuzzSyntax(f *testing.F) {
	long := strings.Repeat(`line of a file\n\u003ctab\u003e\tand \"quotes\" `, 6)
	for _, text := range []string{
		`{}`, `null`, `{"a":[1.5e-3,-0,true,false,null,{},[]]}`, `{"a":"` + long + `"}`, `{"` + long + `":["` + long[:63] + `",""]}`,
		` { "metadata" : { "labels" : { "a" : "\ud83d\ude00" } } } `, `{"data":{"x":"` + strings.Repeat("x", 130) + `\\"}}`,
	} {
		f.Add([]byte(text), uint64(len(text)))
	}
	fuzz.Run(f, func(t testing.TB, data []byte, seed uint64) {
		if len(data) > 1<<10 {
			t.Skip("nothing new at great length")
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		variants := variantsPerInput
		if fuzz.WithoutEngine() {
			variants = 1
		}
		variant := slices.Clone(data)
		for range variants {
			var o codec.Object
			checkSyntax(t, variant, codec.ScanObject(&o, variant), bytes.TrimSpace(variant))
			variant = fuzz.Edit(append(variant[:0], data...), data, rnd)
		}
	})
}

// FuzzComposed holds Decode against its oracles on reviews that are composed by the
// input's choices, and so are mostly accepted.
func FuzzComposed(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(20) {
		choices := make([]byte, 120)
		for i, rnd := 0, rand.New(rand.NewPCG(seed, 1)); i < len(choices); i++ {
			choices[i] = byte(rnd.IntN(1 + 256*int(seed)/20))
		}
		f.Add(choices)
	}
	fuzz.Run(f, func(t testing.TB, choices []byte) {
		c := composer{choices: choices}
		c.review()
		checkDecode(t, c.text)
	})
}
