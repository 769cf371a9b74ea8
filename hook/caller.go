// SPDX-License-Identifier: Apache-2.0

package hook

import "time"

// Caller is what is known of the cluster that asks, beside its name and labels.
type Caller interface {
	// StoredLabels returns the labels of a stored namespace, of which only those are sure to
	// be there that a Hook's Entry or a selector names. It may ask the cluster, and returns
	// well before the deadline. The error says, to the user whose request it is, why they
	// are not known. The labels are read only.
	StoredLabels(namespace string, deadline time.Time) (map[string]string, error)
	// Version is the Kubernetes version of the cluster's API servers; zero if it is not
	// known.
	Version() (major, minor int)
}
