// SPDX-License-Identifier: Apache-2.0

package random

import (
	"encoding/json"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// script returns how a webhook answers. Few mutating ones deny, or not much would
// reach those behind them.
func (w *writer) script(mutating bool) script.Script {
	denials, failures := 20, 10
	if mutating {
		denials, failures = 6, 5
	}
	s := script.Script{Allowed: !w.percent(denials)}
	if !s.Allowed {
		w.explain(&s)
	}
	if w.percent(failures) {
		s.Form = pick(w.source, script.Plain()...)
	}
	s.TellsForm = s.Form == ""
	if mutating && w.percent(75) {
		s.Patch = w.patch()
	}
	if w.percent(20) {
		s.Warnings = some(w.source, 1, 2, "deprecated field", "füße ☃ \"quoted\"", "line\none", strings.Repeat("long ", 80))
	}
	if w.percent(20) {
		s.Annotations = map[string]string{pick(w.source, "verdict", "a.b_c-d", "Key"): pick(w.source, "ok", "ü", "line\ntwo", "")}
	}
	return s
}

func (w *writer) explain(s *script.Script) {
	s.Code = pick(w.source, int32(0), 0, 99, 200, 301, 400, 403, 403, 404, 409, 422, 429, 500, 503, 599, -1)
	s.Reason = pick(w.source, "", "", "Forbidden", "Custom reason")
	s.Message = pick(w.source, "", "no", "two\nlines", "\x1b[31mred\x1b[0m", "\u202eright to left", "ünïcödé ☃", strings.Repeat("much ", 400), "\"quotes\" and \\")
	if s.Code == 429 || w.percent(5) {
		s.RetryAfter = pick(w.source, int32(1), 30, 31, 1000000000)
	}
}

// patches are single operations. Which apply depends on the object, and on what
// webhooks before have done.
var patches = []string{
	`{"op":"add","path":"/metadata/labels","value":{"tier":"a"}}`,
	`{"op":"add","path":"/metadata/labels","value":{"tier":"b","team":"c"}}`,
	`{"op":"add","path":"/metadata/annotations","value":{"note":"ünï ☃ \u2028 <&>"}}`,
	`{"op":"add","path":"/metadata/annotations","value":{"example.com/a":"1","b":"2"}}`,
	`{"op":"add","path":"/metadata/finalizers","value":["example.com/f","example.com/g"]}`,
	`{"op":"add","path":"/metadata/labels","value":{"example.com/zone":"c"}}`,
}

// fragile are operations that fail without what some of patches bring.
var fragile = []string{
	`{"op":"add","path":"/metadata/labels/team","value":"a"}`,
	`{"op":"add","path":"/metadata/labels/example.com~1zone","value":"b"}`,
	`{"op":"remove","path":"/metadata/labels/tier"}`,
	`{"op":"remove","path":"/metadata/labels"}`,
	`{"op":"replace","path":"/metadata/labels/tier","value":"c"}`,
	`{"op":"replace","path":"/metadata/annotations/example.com~1a","value":"9"}`,
	`{"op":"add","path":"/metadata/annotations/a~0b~01c","value":"escaped"}`,
	`{"op":"move","from":"/metadata/labels/tier","path":"/metadata/labels/team"}`,
	// The tests are there because a copy of what is absent makes it null, which Go
	// types read as empty, or as absent.
	`{"op":"test","path":"/metadata/labels/tier","value":"a"},{"op":"copy","from":"/metadata/labels/tier","path":"/metadata/labels/example.com~1zone"}`,
	`{"op":"test","path":"/metadata/labels/tier","value":"a"},{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}`,
	`{"op":"test","path":"/metadata/labels/tier","value":"a"}`,
	`{"op":"test","path":"/metadata/annotations","value":{"b":"2","example.com/a":"1"}}`,
	`{"op":"add","path":"/metadata/finalizers/-","value":"example.com/last"}`,
	`{"op":"add","path":"/metadata/finalizers/0","value":"example.com/first"}`,
	`{"op":"remove","path":"/metadata/finalizers/-1"}`,
	`{"op":"remove","path":"/metadata/finalizers/7"}`,
	`{"op":"add","path":"/spec/parts/-","value":"w"}`,
	`{"op":"replace","path":"/spec/parts/1","value":{"deep":[1,2.5,null,{"x":1.25e-1}]}}`,
	`{"op":"add","path":"/spec/a~1b/m~0n","value":false}`,
	`{"op":"remove","path":"/spec/a~1b/"}`,
	`{"op":"move","from":"/spec/parts/0","path":"/spec/parts/2"}`,
	`{"op":"replace","path":"/spec/replicas","value":5}`,
	`{"op":"replace","path":"/data/a~1b~0c","value":"3"}`,
	`{"op":"test","path":"/metadata/none","value":null}`,
	`{"op":"add","path":"/spec/containers/-","value":{"name":"sidecar","image":"s:1","resources":{}}}`,
	`{"op":"replace","path":"/spec/containers/0/image","value":"registry.example.com/pinned@sha256:1"}`,
}

func (w *writer) patch() json.RawMessage {
	ops := some(w.source, 1, 2, patches...)
	if w.percent(35) {
		ops = append(ops, some(w.source, 1, 2, fragile...)...)
	}
	return json.RawMessage("[" + strings.Join(ops, ",") + "]")
}
