// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"strings"
)

// ExpressionError says that an expression has no result. Its text is what
// kube-apiserver tells the user, and may quote the object.
type ExpressionError struct {
	expression string
	err        error
}

func (e *ExpressionError) Error() string {
	return fmt.Sprintf("expression '%v' resulted in error: %v", e.expression, brief(e.err))
}

// Unwrap returns what CEL said.
func (e *ExpressionError) Unwrap() error { return e.err }

// Discreet is the error for a log: it quotes nothing of the object.
func (e *ExpressionError) Discreet() error {
	return discreet(e.expression, e.err)
}

func failure(expression string, err error) *ExpressionError {
	var said *discreetError
	if errors.As(err, &said) {
		err = said.err
	}
	return &ExpressionError{expression, err}
}

// maxError is how much is told of what CEL says of an error, in bytes: a key that is not
// there may be as long as the object.
const maxError = 5 << 10

func brief(err error) string {
	text := err.Error()
	if len(text) <= maxError {
		return text
	}
	return strings.ToValidUTF8(text[:maxError], "") + " ..."
}
