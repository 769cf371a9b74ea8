// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"bytes"
	"fmt"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// apply applies one webhook's patch to the object as it is now and returns the
// number of operations. Its error is a *Refusal and leaves the object as it was.
func (a *admission) apply(w *registry.Webhook, raw []byte) (operations int, err error) {
	before := a.current()
	if before.IsNull() || a.Review.Operation == codec.Connect { // the options of a CONNECT are nobody's object
		return 0, refusePatch("admission webhook %q attempted to modify the object, which is not supported for this operation", w.Name)
	}
	limits := jsonpatch.DefaultLimits()
	patch, err := jsonpatch.Decode(raw, limits)
	if err != nil {
		return 0, refusePatch("the patch of webhook %q cannot be read: %w", w.Name, err)
	}
	patched, err := patch.Apply(before.Raw, limits)
	if err != nil {
		return 0, refusePatch("the patch of webhook %q does not apply: %w", w.Name, err)
	}
	after := new(codec.Object)
	if err := codec.ScanObject(after, patched); err != nil {
		return 0, refusePatch("the patch of webhook %q makes the object invalid: %w", w.Name, err)
	}
	if field := changedIdentity(before, after); field != "" {
		return 0, refusePatch("the patch of webhook %q changes %s", w.Name, field)
	}
	a.patch = jsonpatch.Concat(a.patch, raw)
	a.patches++
	a.replaceObject(after, patched)
	return patch.Len(), nil
}

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

// replaceObject makes o, whose JSON is raw, what later webhooks are matched
// against and get.
func (a *admission) replaceObject(o *codec.Object, raw []byte) {
	a.object = raw
	a.generation++
	a.subject.SetObject(o)
}

// checkPatch makes sure that the caller can apply the concatenated patch to the
// object that it sent, with kube-apiserver's own limit on copied bytes, and gets
// what the last webhook saw.
func (a *admission) checkPatch() {
	if a.patches < 2 {
		return
	}
	if err := a.replay(); err != nil {
		a.settle(a.judgeReplay(err))
	}
}

func (a *admission) replay() error {
	limits := jsonpatch.DefaultLimits()
	limits.Operations, limits.PatchBytes = 0, 0
	patch, err := jsonpatch.Decode(a.patch, limits)
	if err != nil {
		return fmt.Errorf("the patches of %d webhooks together cannot be read: %w", a.patches, err)
	}
	replayed, err := patch.Apply(a.Review.Object.Raw, limits)
	if err != nil {
		return fmt.Errorf("the patches of %d webhooks together do not apply: %w", a.patches, err)
	}
	if !equalJSON(replayed, a.object) {
		return fmt.Errorf("the patches of %d webhooks together give another object than one after the other", a.patches)
	}
	return nil
}

// judgeReplay is the Outcome of a replay that failed. It counts against the last
// webhook that patched, whatever its mode: there is no object to go on with.
func (a *admission) judgeReplay(err error) Outcome {
	last := &a.outcomes[0]
	for i := range a.outcomes {
		if a.outcomes[i].Operations > 0 {
			last = &a.outcomes[i]
		}
	}
	refusal := refusePatch("%w", err)
	return Outcome{
		Webhook:  last.Webhook,
		Position: last.Position,
		Round:    last.Round,
		Result:   Refused,
		Cause:    refusal.Cause,
		Code:     refusal.Code,
		Err:      refusal,
	}
}
