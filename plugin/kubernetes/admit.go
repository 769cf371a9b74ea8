// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// AlwaysAdmit allows every request that it is asked about. It decides nothing: others are
// asked all the same.
func AlwaysAdmit() plugin.Plugin {
	return unconfigured("AlwaysAdmit", admit{}, plugin.Rule("*", "*", []string{"*/*"}, admissionregistrationv1.OperationAll))
}

type admit struct{}

func (admit) Mutate(context.Context, *plugin.Attributes) (plugin.Answer, error) {
	return plugin.Answer{}, nil
}

func (admit) Validate(context.Context, *plugin.Attributes) (plugin.Answer, error) {
	return plugin.Answer{}, nil
}
