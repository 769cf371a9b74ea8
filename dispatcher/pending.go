// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"bytes"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
)

type pendingPayloads struct{ r *codec.Review }

func (p *pendingPayloads) Reset(r *codec.Review) { p.r = r }
func (p *pendingPayloads) Get(v codec.Version, g int, object []byte) *codec.Body {
	if v == p.r.Version && object == nil {
		return p.r.Body
	}
	return codec.NewBody(p.r.AppendReview(nil, v, object), nil)
}
func (p *pendingPayloads) Release() {}

func pendingLimits() jsonpatch.Limits {
	return jsonpatch.Limits{Operations: 2000, PatchBytes: 1 << 20, CopyBytes: 3 << 20, Depth: 128, Result: 3 << 20}
}
func pendingEqual(a, b []byte) bool                                   { return bytes.Equal(a, b) }
func pendingRule(r admissionregistrationv1.RuleWithOperations) string { return fmt.Sprint(r) }
