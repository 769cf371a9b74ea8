// SPDX-License-Identifier: Apache-2.0

// Package crash says what may be told of a panic.
package crash

import (
	"fmt"
	"runtime"
)

// Text returns what a log line or a message may say of the value of a panic. That
// is its type: a value may quote the object that was worked on. The errors of the
// Go runtime say numbers and types only, and are told whole.
func Text(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", value)
}
