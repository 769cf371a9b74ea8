// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"math/rand/v2"
	"reflect"
	"slices"
)

// fragments are what JSON and protobuf are sensitive to.
var fragments = []string{
	`"`, `\`, `{`, `}`, `[`, `]`, `:`, `,`, ` `, "\n", "\t", "\x00", "\x1f", "\x7f", "\x80", "\xff", "é", "€", "😀", "\xed\xa0\x80", "\xc0\xaf",
	`\n`, `\"`, `\\`, `\/`, `\u`, `\u00e9`, `\u003C`, `\ud83d\ude00`, `\ud800`, `\udc00`, `\x`, `0`, `-`, `.`, `e`, `E+`, `1`, `true`, `nul`, `null`, `""`, `{}`, `[]`,
	`"a":`, `,"a":1`, `xxxxxxx`, `xxxxxxxxxxxxxxxx`, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`,
	"k8s\x00", "\x08\x01", "\x0a\x00", "\x12\x02{}", "\x1a\x01a", "\xff\xff\xff\xff\x0f", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0b", "\x0c", "\x0d\x00\x00\x00\x00",
}

// Edit changes b in one place: it cuts, deletes, repeats, inserts or overwrites, with
// a fragment that scanners are sensitive to or with a part of other.
func Edit(b, other []byte, rnd *rand.Rand) []byte {
	at := rnd.IntN(len(b) + 1)
	piece := []byte(fragments[rnd.IntN(len(fragments))])
	if rnd.IntN(4) == 0 {
		piece = part(other, rnd)
	}
	switch rnd.IntN(8) {
	case 0:
		return b[:at]
	case 1:
		return slices.Delete(b, at, min(at+1+rnd.IntN(4), len(b)))
	case 2:
		return slices.Delete(b, at, at+rnd.IntN(len(b)-at+1))
	case 3:
		return slices.Insert(b, at, slices.Clone(part(b, rnd))...)
	case 4: // as far as here, and of other what is at its end
		return append(b[:at], other[rnd.IntN(len(other)+1):]...)
	case 5:
		if at < len(b) {
			b[at] ^= 1 << rnd.IntN(8)
		}
		return b
	case 6:
		return slices.Replace(b, at, min(at+len(piece), len(b)), piece...)
	}
	return slices.Insert(b, at, piece...)
}

// part is a part of b, mostly a short one.
func part(b []byte, rnd *rand.Rand) []byte {
	at := rnd.IntN(len(b) + 1)
	most := len(b) - at
	if rnd.IntN(2) == 0 {
		most = min(most, 16)
	}
	return b[at : at+rnd.IntN(most+1)]
}

// input makes the input of a number: one of the corpus with one edit, or more.
func (r *run) input(number uint64) []reflect.Value {
	rnd := rand.New(rand.NewPCG(r.seed, number))
	in := slices.Clone(r.corpus[rnd.IntN(len(r.corpus))])
	other := r.corpus[rnd.IntN(len(r.corpus))]
	for i, v := range in {
		switch v.Interface().(type) {
		case []byte:
			in[i] = reflect.ValueOf(edited(v.Bytes(), other[i].Bytes(), rnd))
		case string:
			in[i] = reflect.ValueOf(string(edited([]byte(v.String()), []byte(other[i].String()), rnd)))
		case bool:
			in[i] = reflect.ValueOf(rnd.IntN(2) == 0)
		case uint64:
			in[i] = reflect.ValueOf(rnd.Uint64())
		}
	}
	return in
}

func edited(b, other []byte, rnd *rand.Rand) []byte {
	b = slices.Clone(b)
	for range 5 {
		b = Edit(b, other, rnd)
		if rnd.IntN(2) == 0 {
			break
		}
	}
	return b
}
