// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/base64"
	"unicode/utf8"
)

// readPatch returns the operations of an allow, nil if there are none, and what
// is wrong with them. The patch of a denial is dropped, whatever it is; only
// kube-apiserver drops the denial if its form is wrong.
func (a *answer) readPatch(want *Expectation) (operations []byte, defect string) {
	if !want.Mutating {
		return nil, a.validatingPatchDefect(want)
	}
	if !a.verdict && a.compat == Strict {
		return nil, ""
	}
	patch, err := a.decodedPatch()
	if err != nil {
		return nil, "response.patch is not base64"
	}
	if defect := a.patchTypeDefect(want, len(patch) > 0); defect != "" {
		return nil, defect
	}
	if !a.verdict || len(patch) == 0 {
		return nil, ""
	}
	switch n, ok := a.countOperations(patch); {
	case !ok:
		return nil, "response.patch is not a JSON array of objects"
	case n == 0:
		return nil, ""
	}
	return patch, ""
}

// decodedPatch returns the operations, owned by the caller. In protobuf they are
// not base64.
func (a *answer) decodedPatch() ([]byte, error) {
	if a.encoding != JSON {
		return append([]byte(nil), a.patch...), nil
	}
	return base64.StdEncoding.AppendDecode(nil, a.patch)
}

// validatingPatchDefect: a validating webhook may not return a patch.
// kube-apiserver does not mind for v1beta1, as long as it can read it.
func (a *answer) validatingPatchDefect(want *Expectation) string {
	if want.Version == V1beta1 && a.compat == APIServer {
		if _, err := a.decodedPatch(); err != nil {
			return "response.patch is not base64"
		}
		return ""
	}
	switch {
	case len(a.patch) > 0:
		return "validating webhook may not return response.patch"
	case a.patchType != nil && want.Version == V1:
		return "validating webhook may not return response.patchType"
	}
	return ""
}

// patchTypeDefect: patch and type come together. For v1beta1 the type is not
// looked at.
func (a *answer) patchTypeDefect(want *Expectation, hasPatch bool) string {
	hasType := a.patchType != nil
	switch {
	case want.Version == V1beta1:
	case hasPatch && !hasType:
		return "webhook returned response.patch but not response.patchType"
	case !hasPatch && hasType:
		return "webhook returned response.patchType but not response.patch"
	case hasType && string(a.patchType) != "JSONPatch" && (a.verdict || len(a.patchType) == 0):
		return "webhook returned an unsupported response.patchType"
	}
	return ""
}

// countOperations returns the number of objects in the JSON array patch, for
// which null is empty. It reuses the scanner of the answer, which is done.
func (a *answer) countOperations(patch []byte) (n int, ok bool) {
	s := &a.scanner
	s.release()
	s.data = patch
	if !utf8.Valid(patch) {
		return 0, false
	}
	switch s.next() {
	case '[':
	case 'n':
		return 0, s.skip() && s.end()
	default:
		return 0, false
	}
	if !s.enter() {
		return 0, false
	}
	for s.more(n == 0, ']') {
		if s.next() != '{' || !s.skip() {
			return 0, false
		}
		n++
	}
	return n, s.fault == "" && s.end()
}
