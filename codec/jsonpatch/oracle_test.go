// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"
	v4 "gopkg.in/evanphx/json-patch.v4"
)

// failer is what a *testing.T and a *rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// applyV4 is what kube-apiserver does with a patch. A panic, which there ends
// the request, is an error.
func applyV4(doc, patch []byte) (patched []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	p, err := v4.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return p.Apply(doc)
}

// applyOurs decodes and applies without limits.
func applyOurs(doc, patch []byte) ([]byte, error) {
	p, err := Decode(patch, Limits{})
	if err != nil {
		return nil, err
	}
	return applied(p, doc, Limits{})
}

// applied returns doc with p applied. What a Document borrows is overwritten when
// nobody needs it any more.
func applied(p Patch, doc []byte, limits Limits) ([]byte, error) {
	borrowed := bytes.Clone(doc)
	defer clear(borrowed)
	d, err := Open(borrowed, limits)
	if err != nil {
		return nil, err
	}
	if _, err := d.Apply(p, limits); err != nil {
		return nil, err
	}
	return d.Append(nil, limits)
}

// decodeValue returns what the JSON text means, numbers as spelled.
func decodeValue(t failer, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("result is not JSON: %v\n%s", err, text)
	}
	return v
}

// compare holds our answer against v4's: what we accept, v4 accepts with the
// same result. What v4 accepts we accept, unless it is on the stricter list.
func compare(t failer, doc, patch []byte) {
	t.Helper()
	before := bytes.Clone(doc)
	ours, ourErr := applyOurs(doc, patch)
	if !bytes.Equal(doc, before) {
		t.Fatalf("the document was written to: %s", before)
	}
	theirs, theirErr := applyV4(doc, patch)
	switch {
	case ourErr == nil && theirErr != nil:
		t.Fatalf("accepted what v4 refuses: %v\ndoc %s\npatch %s\nresult %s", theirErr, doc, patch, ours)
	case ourErr != nil && theirErr == nil:
		if !isStricter(doc, patch, ourErr) {
			t.Fatalf("refused what v4 accepts: %v\ndoc %s\npatch %s\nv4 %s", ourErr, doc, patch, theirs)
		}
	case ourErr == nil:
		if diff := cmp.Diff(decodeValue(t, theirs), decodeValue(t, ours)); diff != "" {
			t.Fatalf("differs from v4 (-v4 +ours): %s\ndoc %s\npatch %s", diff, doc, patch)
		}
	}
}

// isStricter reports whether err may stand where v4 has none.
func isStricter(doc, patch []byte, err error) bool {
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return false
	case bytes.Contains([]byte(e.Reason), []byte("occurs more than once")),
		bytes.Contains([]byte(e.Reason), []byte("case variant")),
		bytes.Contains([]byte(e.Reason), []byte("UTF-8")):
		return true
	}
	return len(doc) == 0 || bytes.Equal(bytes.TrimSpace(doc), []byte(null)) || copiesAddedNull(patch)
}

// copiesAddedNull reports whether a patch may copy a null that it has added,
// which v4 takes for {} afterwards.
func copiesAddedNull(patch []byte) bool {
	p, err := Decode(patch, Limits{})
	if err != nil {
		return false
	}
	added, copied := false, false
	for _, op := range p.operations {
		copied = copied || added && op.kind.value == "copy"
		added = added || op.value == null
	}
	return copied
}
