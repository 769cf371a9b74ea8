// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"encoding/json"
)

// patching: the patch is those of the webhooks that took part, one after the
// other, and the annotation names them.
func (t *trial) patching() {
	got, ok := operations(t.c.Patch)
	if !ok {
		t.report(Patch, "not a list of operations: %.80q", t.c.Patch)
		return
	}
	want, patched := t.expected()
	if !bytes.Equal(bytes.Join(got, comma), bytes.Join(want, comma)) {
		t.report(Patch, "is %.200q, must be %.200q", got, want)
	}
	if listed := t.c.listed(mutatedAnnotation); !sameNames(listed, patched) && !t.c.cut(mutatedAnnotation) {
		t.report(Patch, "the annotation names %q, patches are of %q", listed, patched)
	}
}

var comma = []byte(",")

// expected returns the operations of the webhooks that took part, and which
// webhooks those are.
func (t *trial) expected() (all [][]byte, patched []string) {
	if !t.c.Allowed || t.c.Phase != Mutating {
		return nil, nil
	}
	for _, p := range t.parts {
		_, excused := t.said.about(p.webhook.Name)
		if excused || p.truth.denies() || p.truth.Cause != "" {
			continue
		}
		if ops, _ := operations(p.truth.Patch); len(ops) > 0 {
			all, patched = append(all, ops...), append(patched, p.webhook.Name)
		}
	}
	return all, patched
}

// operations returns the operations of a patch without white space, and whether
// it is a patch at all. No patch has none.
func operations(patch []byte) ([][]byte, bool) {
	if len(patch) == 0 {
		return nil, true
	}
	var raw []json.RawMessage
	if json.Unmarshal(patch, &raw) != nil {
		return nil, false
	}
	ops := make([][]byte, len(raw))
	for i, op := range raw {
		var b bytes.Buffer
		if json.Compact(&b, op) != nil {
			return nil, false
		}
		ops[i] = b.Bytes()
	}
	return ops, true
}
