// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// report adds a Problem for each thing that err says.
func (d *decoded) report(at Origin, err error) {
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			d.problems = append(d.problems, strictProblem(at, e))
		}
		return
	}
	d.problems = append(d.problems, plainProblem(at, err))
}

// plainProblem renders the one error that ended decoding.
func plainProblem(at Origin, err error) Problem {
	p := Problem{File: at.File, Object: at.Object, Reason: plainError(err)}
	var typeError *json.UnmarshalTypeError
	if errors.As(err, &typeError) {
		p.Field = typeError.Field
		p.Reason = fmt.Sprintf("must be %s, not %s", kindOf(typeError.Type), typeError.Value)
	}
	return p.bounded()
}

// kindOf names what a field holds as its author knows it.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	}
	return "a number"
}

// plainError drops the word json, which says nothing to who wrote YAML.
func plainError(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "json: ")), " ")
}

// strictProblem renders an unknown or duplicate field.
func strictProblem(at Origin, err error) Problem {
	p := Problem{File: at.File, Object: at.Object, Reason: plainError(err)}
	var fieldError interface{ FieldPath() string }
	if !errors.As(err, &fieldError) {
		return p.bounded()
	}
	p.Field = fieldError.FieldPath()
	what, _, _ := strings.Cut(p.Reason, " \"")
	p.Reason = what
	name := p.Field[strings.LastIndexByte(p.Field, '.')+1:]
	if what == "unknown field" && slices.Contains(secretFields(), name) {
		p.Reason = fmt.Sprintf("a secret %s", fileReference)
	}
	return p.bounded()
}

// secretFields are names that people give to a secret written out in a manifest.
// None of them is a field.
func secretFields() []string {
	return []string{"bearerToken", "token", "password", "secret", "pathSecret", "pathSecrets", "key", "keyData",
		"clientKey", "clientKeyData", "privateKey", "certData", "bearerTokens", "tokens"}
}

// fileReference is what E14 demands of a secret.
const fileReference = "must be a file reference"
