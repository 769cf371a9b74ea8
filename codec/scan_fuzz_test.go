// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/admission-dispatcher/dispatcher/codec"
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
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		if len(data) > 1<<10 {
			t.Skip("nothing new at great length")
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		reader := jsontext.NewDecoder(bytes.NewReader(nil))
		variant := slices.Clone(data)
		for range variantsPerInput {
			checkScan(t, reader, variant)
			variant = edit(append(variant[:0], data...), rnd)
		}
	})
}

// checkScan makes sure that ScanObject and reader agree on what is JSON.
func checkScan(t *testing.T, reader *jsontext.Decoder, data []byte) {
	t.Helper()
	var o codec.Object
	err := codec.ScanObject(&o, data)
	blamed := err != nil && strings.Contains(err.Error(), "not strict JSON")
	reader.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	strict := reader.SkipValue() == nil
	if strict {
		_, end := reader.ReadToken()
		strict = errors.Is(end, io.EOF)
	}
	if blamed && strict || err == nil && !strict && (!isJSON(data, true) || !isStrictJSON(withoutForeign(data, bytes.TrimSpace(data)))) {
		t.Fatalf("we say %v, jsontext says strict %v: %q", err, strict, data)
	}
}

// fragments are what JSON is sensitive to.
var fragments = []string{
	`"`, `\`, `{`, `}`, `[`, `]`, `:`, `,`, ` `, "\n", "\t", "\x00", "\x1f", "\x7f", "\x80", "\xff", "é", "€", "😀", "\xed\xa0\x80", "\xc0\xaf",
	`\n`, `\"`, `\\`, `\/`, `\u`, `\u00e9`, `\u003C`, `\ud83d\ude00`, `\ud800`, `\udc00`, `\x`, `0`, `-`, `.`, `e`, `E+`, `1`, `true`, `nul`, `null`, `""`, `{}`, `[]`,
	`"a":`, `,"a":1`, `xxxxxxx`, `xxxxxxxxxxxxxxxx`, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`,
}

// edit cuts, inserts or overwrites something in b.
func edit(b []byte, rnd *rand.Rand) []byte {
	at := rnd.IntN(len(b) + 1)
	fragment := fragments[rnd.IntN(len(fragments))]
	switch rnd.IntN(4) {
	case 0:
		return b[:at]
	case 1:
		return slices.Delete(b, at, min(at+1+rnd.IntN(4), len(b)))
	case 2:
		return append(b[:at], append([]byte(fragment), b[min(at+len(fragment), len(b)):]...)...)
	}
	return slices.Insert(b, at, []byte(fragment)...)
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
	f.Fuzz(func(t *testing.T, choices []byte) {
		c := composer{choices: choices}
		c.review()
		checkDecode(t, c.text)
	})
}
