// SPDX-License-Identifier: Apache-2.0

package match

import (
	"errors"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// matchPolicy says what rules are held against, because the API server may have
// converted what the user sent. Exact: what was sent (requestResource).
// Equivalent: what it was converted to (resource) or what was sent.
//
// kube-apiserver would convert for every Equivalent webhook by itself. We cannot:
// one that lists the resource in other versions only is NotConvertible.
type selection struct {
	rule     int  // index of the first rule that fits, -1 if none does
	selected bool // false: it fits but for the version
}

func (m *Matcher) firstRule(r *codec.Review) selection {
	asSent := request{r.Operation, &r.RequestResource, r.RequestSubResource, r.Namespace}
	if m.exact {
		i := m.indexOf(asSent, (*rule).selects)
		return selection{i, i >= 0}
	}
	asMatched := request{r.Operation, &r.Resource, r.SubResource, r.Namespace}
	if i := m.indexOfEither(asMatched, asSent, (*rule).selects); i >= 0 {
		return selection{i, true}
	}
	return selection{m.indexOfEither(asMatched, asSent, (*rule).selectsAnyVersion), false}
}

func (m *Matcher) indexOfEither(a, b request, selects func(*rule, request) bool) int {
	if i := m.indexOf(a, selects); i >= 0 {
		return i
	}
	return m.indexOf(b, selects)
}

func (m *Matcher) indexOf(q request, selects func(*rule, request) bool) int {
	for i := range m.rules {
		if selects(&m.rules[i], q) {
			return i
		}
	}
	return -1
}

var errNotConvertible = errors.New("the webhook lists this resource only in other versions, and objects cannot be converted here; " +
	"list the version in the cluster's registration of the dispatcher, then the API server converts")
