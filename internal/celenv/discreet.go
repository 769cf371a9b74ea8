// SPDX-License-Identifier: Apache-2.0

package celenv

import "strings"

// discreetError is an evaluation's error without what CEL quotes from the object:
// it goes into logs.
type discreetError struct {
	text string
	err  error
}

func (e *discreetError) Error() string { return e.text }

func (e *discreetError) Unwrap() error { return e.err }

// discreet returns err as a discreetError. CEL says what happened, a colon, and on
// what; the latter is kept where it is CEL's own or stands in the expression.
func (c *Condition) discreet(err error) error { return discreet(c.expression, err) }

func discreet(expression string, err error) error {
	if err == nil {
		return nil
	}
	what, on, quoted := strings.Cut(err.Error(), ": ")
	if !quoted || on == "actual cost limit exceeded" || strings.Contains(expression, on) {
		return err
	}
	return &discreetError{text: what, err: err}
}
