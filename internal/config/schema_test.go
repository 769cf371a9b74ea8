// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

var update = flag.Bool("update", false, "rewrite the definition of the configuration in the chart's schema")

const valuesSchema = "../../deploy/chart/admission-dispatcher/values.schema.json"

// TestChartSchema: the chart's values may have any field of the configuration that the
// chart does not set itself, and nothing else, so that a misspelt one is refused before
// a pod starts.
func TestChartSchema(t *testing.T) {
	text, err := os.ReadFile(valuesSchema)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	want := schemaOf("", reflect.TypeFor[config.Config]())
	if diff := cmp.Diff(want, schema.Definitions["configuration"]); diff != "" {
		if !*update {
			t.Errorf("the schema differs; rewrite it with -update:\n%s", diff)
			return
		}
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		const key = `"configuration": {`
		from := bytes.LastIndex(text, []byte(key)) + len(key) - 1
		to := from + bytes.IndexByte(text[from:], '\n') - len(",")
		if err := os.WriteFile(valuesSchema, slices.Concat(text[:from], line, text[to:]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// setByChart are the fields that belong to the chart.
var setByChart = []string{"apiVersion", "kind", "listen", "tls", "admin.listen", "admin.tls", "sources", "fileRoots", "lameDuck"}

// words are the values of enumerations, by field.
var words = map[string][]string{
	"encoding":   webhook.Encodings[:],
	"log.format": {"json", "text"},
	"log.level":  {"debug", "info", "warn", "error"},
}

// schemaOf returns the JSON Schema of the field at a path, as decoding reads it.
func schemaOf(path string, t reflect.Type) any {
	switch {
	case t == reflect.TypeFor[config.Duration]():
		return map[string]any{"type": "string", "pattern": `^[0-9.]+(ns|us|ms|s|m|h)([0-9.]+(ns|us|ms|s|m|h))*$`}
	case words[path] != nil:
		return map[string]any{"enum": toAny(words[path])}
	case t.Kind() == reflect.Struct:
		properties := map[string]any{}
		for f := range t.Fields() {
			if at := path + nameOf(f); !slices.Contains(setByChart, at) {
				inner := at
				if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[config.Duration]() {
					inner += "."
				}
				properties[nameOf(f)] = schemaOf(inner, f.Type)
			}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(path+"[].", t.Elem())}
	}
	return map[string]any{"type": map[reflect.Kind]any{
		reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.String: "string",
	}[t.Kind()]}
}

func toAny(list []string) []any {
	var all []any
	for _, s := range list {
		all = append(all, s)
	}
	return all
}
