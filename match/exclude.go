// SPDX-License-Identifier: Apache-2.0

package match

import "github.com/admission-dispatcher/dispatcher/codec"

// What a policy excludes, and what its binding narrows it to, is asked about the
// request as the user sent it. kube-apiserver asks about every version of it that the
// cluster serves, too, where matchPolicy is Equivalent. Which these are is not known
// here, and what is not known never lets anything past a policy:
//
//   - an excludeResourceRule selects the version that was sent, and the one that the API
//     server has converted to;
//   - a resourceRule of a binding selects every version of what it lists.

// excludes returns why the review is not wanted although a rule selects it; Matched:
// it is.
func (m *Matcher) excludes(r *codec.Review) Reason {
	if m.excluded(r) {
		return ExcludeRule
	}
	n := m.narrower
	switch {
	case n == nil:
		return Matched
	case n.excluded(r):
		return ExcludeRule
	case len(n.rules) == 0:
		return Matched
	}
	selects := (*rule).selectsEquivalent
	if n.exact {
		selects = (*rule).selects
	}
	if n.indexOf(requestSent(r), selects) < 0 {
		return BindingRule
	}
	return Matched
}

func (m *Matcher) excluded(r *codec.Review) bool {
	asSent := requestSent(r)
	asIs := requestMade(r)
	for i := range m.exclude {
		if x := &m.exclude[i]; x.selects(asSent) || !m.exact && x.selects(asIs) {
			return true
		}
	}
	return false
}
