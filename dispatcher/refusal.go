// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"fmt"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Refusal says that the dispatcher itself must say no, whatever the failure
// policy: a patch that does not apply, a dry run that is not supported, a match
// that cannot be decided.
type Refusal struct {
	Cause webhook.Cause
	Code  int32
	Err   error
}

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

func refusePatch(format string, args ...any) *Refusal {
	return &Refusal{Cause: webhook.BadPatch, Code: webhook.BadPatch.Code(), Err: fmt.Errorf(format, args...)}
}

func refuseDryRun(name string) *Refusal {
	return &Refusal{
		Cause: webhook.DryRun,
		Code:  webhook.DryRun.Code(),
		Err:   fmt.Errorf("admission webhook %q does not support dry run", name),
	}
}

// refuseMatch is the Refusal of a webhook whose match cannot be decided. An
// unknown namespace is a 404, as in kube-apiserver.
func refuseMatch(m match.Decision) *Refusal {
	code := webhook.MatchError.Code()
	if m.Reason == match.NamespaceUnknown {
		code = 404
	}
	return &Refusal{Cause: webhook.MatchError, Code: code, Err: m.Err}
}
