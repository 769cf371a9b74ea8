// SPDX-License-Identifier: Apache-2.0

package hook

// Refusal says that the dispatcher itself must say no, whatever the failure
// policy: a patch that does not apply, a dry run that is not supported, a match
// that cannot be decided.
type Refusal struct {
	Cause Cause
	Code  int32
	Err   error
}

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }
