// SPDX-License-Identifier: Apache-2.0

package match

import "github.com/admission-dispatcher/dispatcher/codec"

// An objectSelector is asked about the new object, as mutated so far, and about
// the old one; either will do. What is null or has no metadata, such as
// PodExecOptions, is never selected by a selector that asks for anything, not
// even for the absence of a label.
func (m *Matcher) objectFits(s *Subject) bool {
	return len(m.objects) == 0 || m.objects.selectsObject(s.Object) || m.objects.selectsObject(&s.Review.OldObject)
}

func (s selector) selectsObject(o *codec.Object) bool {
	return o.HasMetadata && s.selects(o.Labels)
}
