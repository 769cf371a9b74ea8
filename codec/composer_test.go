// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"slices"
	"strings"
)

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

// longText has more than a block of escapes.
var longText = `"` + strings.Repeat(`\u003cb\u003e `, 9) + `"`

func (c *composer) string() {
	c.oneOf(`"a"`, `""`, `"pods"`, `"a longer name, of more than one word"`, `"a\u0062\n"`, `"\ud83d\ude00"`, `"Ж€"`, `"\\\"\/\b\f\t\r"`, `null`, longText, `"CREATE"`, `1`, `"\ud800"`)
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
