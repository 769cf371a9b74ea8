// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"bytes"
	"fmt"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// apply applies one webhook's patch to the object as it is now and returns the
// number of operations. Its error is a *Refusal, or a *hook.CallError where there
// was no turn, and leaves the object as it was.
//
// What is answered to the caller is the operations of all patches in one, applied to
// the object that it sent. The Document gives just that, so nothing needs to be
// applied twice to know that it can be.
func (a *admission) apply(w *chain.Entry, raw []byte) (operations int, err error) {
	before := a.subject.Object
	if before.IsNull() || a.Review.Operation == codec.Connect { // the options of a CONNECT are nobody's object
		return 0, refusePatch("admission %s attempted to modify the object, which is not supported for this operation", w.Called())
	}
	done, err := a.subject.Turn(len(before.Raw) + len(raw))
	if err != nil {
		return 0, &hook.CallError{Cause: hook.Shed, Err: err}
	}
	defer done()
	limits := jsonpatch.DefaultLimits()
	limits.Deadline = a.Deadline
	patch, err := jsonpatch.Decode(raw, limits)
	if err == nil {
		err = codec.CheckJSON(raw)
	}
	if err != nil {
		return 0, refusePatch("the patch of %s cannot be read: %w", w.Called(), err)
	}
	document, err := a.open(limits)
	if err != nil {
		return 0, refusePatch("the object cannot be patched: %w", err)
	}
	a.document = nil // unless all goes well
	changed, err := document.Apply(patch, limits)
	if err != nil {
		return 0, refusePatch("the patch of %s does not apply: %w", w.Called(), err)
	}
	if changed {
		if err := a.replaceObject(document, limits, w); err != nil {
			return 0, err
		}
	}
	a.patch = jsonpatch.Concat(a.patch, raw)
	a.patches++
	if document.Footprint() <= len(a.subject.Object.Raw)/2+maxFootprint {
		a.document = document
	}
	return patch.Len(), nil
}

// maxFootprint is how many bytes a Document that is kept while webhooks are called
// may take besides half as many as the object has. One that takes more is made again:
// it may be twenty times as large as the object.
const maxFootprint = 64 << 10

// open returns the object with all patches so far applied.
func (a *admission) open(limits jsonpatch.Limits) (*jsonpatch.Document, error) {
	if a.document != nil {
		return a.document, nil
	}
	d, err := jsonpatch.Open(a.Review.Object.Raw, limits)
	if err != nil || a.patches == 0 {
		return d, err
	}
	all := limits
	all.Operations, all.PatchBytes = 0, 0 // each patch was within them
	patch, err := jsonpatch.Decode(a.patch, all)
	if err != nil {
		return nil, err
	}
	_, err = d.Apply(patch, all)
	return d, err
}

// replaceObject makes what d holds the object that later webhooks are matched
// against and get. The values in it have been checked, those of the caller when the
// review was read: only what decides about the object is looked at.
func (a *admission) replaceObject(d *jsonpatch.Document, limits jsonpatch.Limits, w *chain.Entry) error {
	before := a.subject.Object
	after := &codec.Object{Labels: make(codec.Labels, 0, len(before.Labels)+spareLabels)}
	if err := codec.ScanObject(after, d.AppendOutline(make([]byte, 0, usualOutline), "apiVersion", "kind", "metadata")); err != nil {
		return refusePatch("the patch of %s makes the object invalid: %w", w.Called(), err)
	}
	if field := changedIdentity(before, after); field != "" {
		return refusePatch("the patch of %s changes %s", w.Called(), field)
	}
	patched, err := d.Append(make([]byte, 0, len(before.Raw)+sparePatched), limits)
	if err != nil {
		return refusePatch("the patch of %s does not apply: %w", w.Called(), err)
	}
	after.Raw = patched
	a.subject.View = a.subject.Mutated(after)
	return nil
}

// What is mostly enough, so that nothing is allocated twice.
const (
	sparePatched = 4 << 10 // by how many bytes patches make an object larger
	spareLabels  = 4       // how many they add
	usualOutline = 1 << 10 // size of metadata in bytes
)

// changedIdentity returns the first field of the object's identity that the
// patch changed. Answering for another object than the user sent would let a
// webhook escape the checks on the first.
func changedIdentity(before, after *codec.Object) string {
	switch {
	case !bytes.Equal(before.APIVersion, after.APIVersion):
		return "apiVersion"
	case !bytes.Equal(before.Kind, after.Kind):
		return "kind"
	case !bytes.Equal(before.Namespace, after.Namespace):
		return "metadata.namespace"
	case !bytes.Equal(before.UID, after.UID):
		return "metadata.uid"
	}
	return ""
}

func refusePatch(format string, args ...any) *hook.Refusal {
	return &hook.Refusal{Cause: hook.BadPatch, Code: hook.BadPatch.Code(), Err: fmt.Errorf(format, args...)}
}
