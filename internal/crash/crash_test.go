// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

const secret = "swordfish"

// caught runs f and returns what may be told of its panic.
func caught(f func()) (text string) {
	defer func() { text = crash.Text(recover()) }()
	f()
	return ""
}

func TestText(t *testing.T) {
	var (
		list    []byte
		written map[string]int
		nobody  *struct{ name string }
		value   any = secret
	)
	for name, c := range map[string]struct {
		panics func()
		want   string
	}{
		"index":     {func() { _ = list[len(secret)] }, "runtime error: index out of range [9] with length 0"},
		"nil":       {func() { _ = nobody.name }, "runtime error: invalid memory address or nil pointer dereference"},
		"map":       {func() { written[secret] = 1 }, "assignment to entry in nil map"},
		"assertion": {func() { _ = value.(int) }, "interface conversion: interface {} is string, not int"},
		"hash":      {func() { _ = map[any]int{[]string{secret}: 1} }, "runtime error: hash of unhashable type []string"},
		"text":      {func() { panic(secret) }, "a value of type string"},
		"error":     {func() { panic(errors.New(secret)) }, "a value of type *errors.errorString"},
		"wrapped":   {func() { panic(fmt.Errorf("%w", errors.New(secret))) }, "a value of type *fmt.wrapError"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := caught(c.panics); got != c.want || strings.Contains(got, secret) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}
