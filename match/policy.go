// SPDX-License-Identifier: Apache-2.0

package match

import (
	"errors"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// The API server may have converted what the user sent (requestResource) to what
// the review holds (resource), because it found the resource as sent in no rule of
// the cluster's registration of us. matchPolicy says which requests a webhook
// wants; what it is sent must be in a group and version that it lists. The first
// row that fits decides:
//
//	policy       requestResource           resource   decision
//	Exact        in no rule                           NoRule
//	Exact        in a rule                 in a rule  selected
//	Exact        in a rule                 in none    NotConvertible
//	Equivalent                             in a rule  selected
//	Equivalent   in a rule, or in one in another      NotConvertible
//	             version or an equivalent group;
//	             or resource is
//	Equivalent                                        NoRule
//
// kube-apiserver would convert for every webhook by itself. We cannot: a webhook
// that lists other forms only is NotConvertible, and never skipped silently.
type selection struct {
	rule     int  // index of the first rule that fits, -1 if none does
	selected bool // false: it fits but for the form
}

func (m *Matcher) firstRule(r *codec.Review) selection {
	var (
		asSent = request{r.Operation, &r.RequestResource, r.RequestSubResource, r.Namespace}
		asIs   = request{r.Operation, &r.Resource, r.SubResource, r.Namespace}
		sent   = -1
	)
	if m.exact {
		if sent = m.indexOf(asSent, (*rule).selects); sent < 0 {
			return selection{-1, false}
		}
	}
	if i := m.indexOf(asIs, (*rule).selects); i >= 0 {
		return selection{i, true}
	}
	if m.exact {
		return selection{sent, false}
	}
	if i := m.indexOf(asIs, (*rule).selectsEquivalent); i >= 0 {
		return selection{i, false}
	}
	return selection{m.indexOf(asSent, (*rule).selectsEquivalent), false}
}

func (m *Matcher) indexOf(q request, selects func(*rule, request) bool) int {
	for i := range m.rules {
		if selects(&m.rules[i], q) {
			return i
		}
	}
	return -1
}

var errNotConvertible = errors.New("the webhook lists this resource only in other versions or groups, and objects cannot be converted here; " +
	"apply what \"dispatcher registration\" prints for the cluster, then the API server converts")
