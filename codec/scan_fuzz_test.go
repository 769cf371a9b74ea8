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
	if blamed && strict || err == nil && !strict {
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

// composer writes a review. Where there is a choice, the next byte of choices
// makes it; without one it writes what kube-apiserver would.
type composer struct{ choices, text []byte }

func (c *composer) choose(n int) int {
	if len(c.choices) == 0 {
		return 0
	}
	choice := int(c.choices[0]) % n
	c.choices = c.choices[1:]
	return choice
}

// oneOf writes one of texts; half of the choices are for the first.
func (c *composer) oneOf(texts ...string) {
	c.text = append(c.text, texts[max(0, c.choose(2*len(texts))-len(texts))]...)
}

func (c *composer) space() {
	if c.choose(32) == 31 {
		c.text = append(c.text, " \n\t\r"...)
	}
}

// member is a key, and what writes its value.
type member struct {
	key   string
	value func()
}

// object writes the members, mostly in order.
func (c *composer) object(members ...member) {
	c.text = append(c.text, '{')
	first := true
	for len(members) > 0 {
		i := 0
		switch choice := c.choose(32); {
		case choice == 31: // left out
			members = members[1:]
			continue
		case choice > 27: // out of order
			i = c.choose(len(members))
		}
		if !first {
			c.text = append(c.text, ',')
		}
		first = false
		c.space()
		c.key(members[i].key)
		c.space()
		c.text = append(c.text, ':')
		c.space()
		members[i].value()
		c.space()
		if c.choose(128) != 127 { // or once more
			members = slices.Delete(members, i, i+1)
		}
	}
	c.text = append(c.text, '}')
}

// key writes key, rarely with an escape, and more rarely as a variant.
func (c *composer) key(key string) {
	switch c.choose(64) {
	case 62:
		c.text = append(c.text, `"\u00`...)
		c.text = append(c.text, "0123456789abcdef"[key[0]>>4], "0123456789abcdef"[key[0]&0xF])
		c.text = append(c.text, key[1:]...)
	case 63:
		c.text = append(c.text, '"', key[0]^0x20)
		c.text = append(c.text, key[1:]...)
	default:
		c.text = append(c.text, '"')
		c.text = append(c.text, key...)
	}
	c.text = append(c.text, '"')
}

func (c *composer) string() {
	c.oneOf(`"a"`, `""`, `"pods"`, `"a longer name, of more than one word"`, `"a\u0062\n"`, `"\ud83d\ude00"`, `"Ж€"`, `"\\\"\/\b\f\t\r"`, `null`, `"`+strings.Repeat(`\u003cb\u003e `, 9)+`"`, `"CREATE"`, `1`, `"\ud800"`)
}

func (c *composer) strings() {
	switch c.choose(8) {
	case 6:
		c.oneOf(`[]`, `null`, `[null]`, `{}`, `[ "a" , "b" ]`)
	default:
		c.text = append(c.text, '[')
		c.string()
		c.text = append(c.text, ',')
		c.string()
		c.text = append(c.text, ']')
	}
}

func (c *composer) review() {
	c.object(
		member{"kind", func() { c.oneOf(`"AdmissionReview"`) }},
		member{"apiVersion", func() { c.oneOf(`"admission.k8s.io/v1"`, `"admission.k8s.io\/v1beta1"`) }},
		member{"request", c.request},
	)
}

func (c *composer) request() {
	c.object(
		member{"uid", func() { c.oneOf(`"0f7c9d0e"`, `"\u0061"`, `""`) }},
		member{"kind", func() { c.names("kind") }},
		member{"resource", func() { c.names("resource") }},
		member{"subResource", c.string},
		member{"requestKind", func() { c.names("kind") }},
		member{"requestResource", func() { c.names("resource") }},
		member{"requestSubResource", c.string},
		member{"name", c.string},
		member{"namespace", c.string},
		member{"operation", func() { c.oneOf(`"CREATE"`, `"UPDATE"`, `"\u0044ELETE"`, `"CONNECT"`, `"create"`) }},
		member{"userInfo", c.user},
		member{"object", c.admitted},
		member{"oldObject", c.admitted},
		member{"dryRun", func() { c.oneOf(`false`, `true`, `null`, `0`) }},
		member{"options", func() { c.oneOf(`null`, `{}`, `{"kind":"CreateOptions","x":[1,{"x":"\n"}]}`, `[]`) }},
		member{"unknown", c.string},
	)
}

func (c *composer) names(last string) {
	if c.choose(16) == 15 {
		c.oneOf(`null`, `{}`, `""`)
		return
	}
	c.object(member{"group", c.string}, member{"version", c.string}, member{last, func() { c.oneOf(`"pods"`, `"a"`, `""`, `null`) }})
}

func (c *composer) user() {
	c.object(
		member{"username", c.string},
		member{"uid", c.string},
		member{"groups", c.strings},
		member{"extra", func() { c.object(member{"a", c.strings}, member{"b", c.strings}) }},
	)
}

func (c *composer) admitted() {
	if c.choose(8) == 7 {
		c.oneOf(`null`, `{}`, `{"metadata":null}`, `{"metadata":{"labels":null}}`, `""`)
		return
	}
	c.object(
		member{"kind", c.string},
		member{"apiVersion", c.string},
		member{"metadata", func() {
			c.object(
				member{"name", c.string},
				member{"namespace", c.string},
				member{"uid", c.string},
				member{"labels", func() { c.object(member{"app", c.string}, member{"tier", c.string}) }},
				member{"generateName", c.string},
			)
		}},
		member{"spec", func() { c.oneOf(`{"a":[1.5e-3,-0,true,null,{}]}`, `[]`, `0`, `01`) }},
	)
}
