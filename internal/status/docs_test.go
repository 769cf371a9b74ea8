// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// TestDocumented compares the tables of docs/status.md with the structs: a section
// for each, with its fields in order and their types.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\| ([^|]+) \\|$").FindAllStringSubmatch(body, -1) {
			documented[name] = append(documented[name], row[1]+" "+row[2])
		}
	}
	declared := map[string][]string{}
	declare(reflect.TypeFor[status.Status](), declared)
	if diff := cmp.Diff(declared, documented); diff != "" {
		t.Errorf("structs (-) and documentation (+):\n%s", diff)
	}
}

// declare enters the fields of t and of what they hold, as JSON has them.
func declare(t reflect.Type, into map[string][]string) {
	if _, known := into[t.Name()]; known {
		return
	}
	into[t.Name()] = nil
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		into[t.Name()] = append(into[t.Name()], name+" "+typeName(f.Type, into))
	}
}

func typeName(t reflect.Type, into map[string][]string) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem(), into)
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem(), into) + " or null"
	case t.Kind() == reflect.Map:
		return "map"
	case t.Kind() == reflect.Struct:
		declare(t, into)
		return t.Name()
	case t.Kind() == reflect.String, t.Kind() == reflect.Bool:
		return t.Kind().String()
	}
	return "number"
}
