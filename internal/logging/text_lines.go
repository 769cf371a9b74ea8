// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// textWriter writes JSON lines of slog as text for people: time, level and message, then
// key=value. It stands behind the Queue, which tells lines apart by their JSON: what a
// request brings cannot look like a key there.
type textWriter struct{ out io.Writer }

// Write writes one line. What is no JSON object is written as it is.
func (w textWriter) Write(line []byte) (int, error) {
	text, ok := textOf(line)
	if !ok {
		return w.out.Write(line)
	}
	if _, err := io.WriteString(w.out, text); err != nil {
		return 0, err
	}
	return len(line), nil
}

func textOf(line []byte) (text string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return "", false
	}
	head, rest := map[string]string{}, strings.Builder{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return "", false
		}
		name, _ := key.(string)
		switch name {
		case "time", "level", "msg":
			head[name] = plainValue(value)
		default:
			rest.WriteString(" " + quoted(name) + "=" + quoted(plainValue(value)))
		}
	}
	return head["time"] + " " + (head["level"] + "  ")[:max(5, len(head["level"]))] + " " + head["msg"] + rest.String() + "\n", true
}

// plainValue is a string itself, and anything else as JSON has it.
func plainValue(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// quoted quotes what would not read as one word, or what a terminal would obey.
func quoted(text string) string {
	special := func(r rune) bool { return r == '"' || r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if text == "" || strings.ContainsFunc(text, special) {
		return strconv.QuoteToGraphic(text)
	}
	return text
}
