// SPDX-License-Identifier: Apache-2.0

package match

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// Subject is what webhooks are matched against. It borrows the View, has no object or
// variables of its own, and is used by one goroutine. What was known of the namespace for
// one webhook is kept for all others.
type Subject struct {
	*hook.View            // of the object as it is now
	Namespaces Namespaces // nil: only kubernetes.io/metadata.name is known
	// Deadline ends the evaluation of matchConditions, all webhooks' together; zero:
	// only their own bounds do.
	Deadline time.Time

	namespace storedNamespace
}
