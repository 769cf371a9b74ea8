// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"errors"
	"fmt"
	"strings"
)

// How much of a patch's own text an Error repeats, in bytes.
const (
	maxErrorOp   = 32
	maxErrorPath = 256
)

// Error says why a patch cannot be read or does not apply.
type Error struct {
	// Index is the operation that failed, from 0, or -1 if the patch or the
	// document as a whole is the problem.
	Index int
	// Op and Path are the operation's own, cut to a sane length.
	Op, Path string
	Reason   string
	// Limit is set where the patch exceeds a limit and might apply without it.
	Limit bool
	// Untrue is set where a test operation found another value than it tests for.
	Untrue bool
}

// Error repeats nothing of the patch and nothing of the document: it goes into
// logs.
func (e *Error) Error() string {
	switch e.Op {
	case "add", "remove", "replace", "move", "copy", "test":
		return fmt.Sprintf("operation %d (%s): %s", e.Index, e.Op, e.Reason)
	}
	if e.Index < 0 {
		return e.Reason
	}
	return fmt.Sprintf("operation %d: %s", e.Index, e.Reason)
}

// reason and limit are the errors inside the package, which know neither the
// operation nor the path.
type reason string

func (r reason) Error() string { return string(r) }

type limit string

func (l limit) Error() string { return string(l) }

func reasonf(format string, args ...any) error { return reason(fmt.Sprintf(format, args...)) }

func limitf(format string, args ...any) error { return limit(fmt.Sprintf(format, args...)) }

// documentError returns err as an *Error that is about no operation, unless it
// is an *Error already.
func documentError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Index: -1, Reason: err.Error(), Limit: isLimit(err)}
}

func operationError(index int, op *operation, err error) *Error {
	return &Error{
		Index:  index,
		Op:     cut(op.kind.value, maxErrorOp),
		Path:   cut(op.path.value, maxErrorPath),
		Reason: err.Error(),
		Limit:  isLimit(err),
		Untrue: errors.Is(err, untrue),
	}
}

// untrue is the error of a test that does not hold.
const untrue = reason("the value is another one than tested for")

func isLimit(err error) bool {
	_, ok := errors.AsType[limit](err)
	return ok
}

// cut shortens s to at most size bytes of whole characters.
func cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size-len("...")], "") + "..."
}
