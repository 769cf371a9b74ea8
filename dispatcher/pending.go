// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func pendingRule(r admissionregistrationv1.RuleWithOperations) string { return fmt.Sprint(r) }
