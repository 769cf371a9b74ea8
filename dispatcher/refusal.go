// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"fmt"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

func refusePatch(format string, args ...any) *hook.Refusal {
	return &hook.Refusal{Cause: hook.BadPatch, Code: hook.BadPatch.Code(), Err: fmt.Errorf(format, args...)}
}

func refuseDryRun(w *chain.Entry) *hook.Refusal {
	return &hook.Refusal{
		Cause: hook.DryRun,
		Code:  hook.DryRun.Code(),
		Err:   fmt.Errorf("admission %s does not support dry run", w.Called()),
	}
}

// refuseMatch is the Refusal of a webhook whose match cannot be decided. An
// unknown namespace is a 404, as in kube-apiserver.
func refuseMatch(m match.Decision) *hook.Refusal {
	code := hook.MatchError.Code()
	if m.Reason == match.NamespaceUnknown {
		code = 404
	}
	return &hook.Refusal{Cause: hook.MatchError, Code: code, Err: m.Err}
}
