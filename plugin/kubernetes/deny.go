// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// AlwaysDeny denies every request that it is asked about, after all other plugins of its
// phase.
func AlwaysDeny() plugin.Plugin {
	return unconfigured("AlwaysDeny", deny{}, plugin.Rule("*", "*", []string{"*/*"}, admissionregistrationv1.OperationAll))
}

type deny struct{}

func (deny) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	return a.Forbid("admission control is denying all modifications"), nil
}

func (d deny) Validate(ctx context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	return d.Mutate(ctx, a)
}
