// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// View is one generation of one review: the review as it was received, the object as
// mutated so far, and the forms in which it is sent, each made once for all Hooks.
// It is reference-counted: whoever uses it after its own frame retains it first.
// What it has does not change, and is safe for concurrent use.
type View struct {
	Source
	// Object is the object as mutated so far; &Review.Object as received.
	Object *codec.Object
	// UID is that of the round, which Hooks are asked under in place of the Review's.
	UID        []byte
	Generation int    // how often the object was mutated
	uid        []byte // UID, if it is not the Review's

	refs     atomic.Int32
	mu       sync.Mutex // guards what follows, which is made when first asked for
	payloads codec.Payloads
	resource string
}

// Source is what all Views of one review have in common.
type Source struct {
	Review        *codec.Review
	Cluster       string
	ClusterLabels map[string]string // read only
	Mutating      bool              // the phase; otherwise validating
	// Account counts the memory of the forms and gives the turns to make them.
	Account Account
	Until   time.Time // how long to wait for a turn
	// Transcoder makes the objects of Hooks that take them as native protobuf; nil:
	// none gets that.
	Transcoder codec.Transcoder
}

// Account shares out memory and processor time among clusters. It is safe for
// concurrent use.
type Account interface {
	// Turn waits until the given time for the cluster's turn to work on so many bytes.
	// Without an error done must be called after the work.
	Turn(cluster string, size int, until time.Time) (done func(), err error)
	// Hold has the bytes of body counted as the cluster's until the last reference to
	// it is gone. admitted: they are for an admission that has a slot. The error says
	// that there is no room for them.
	Hold(cluster string, body *codec.Body, admitted bool) error
}

var views = sync.Pool{New: func() any { return new(View) }}

// NewView returns the View of a review as it was received, with one reference. The
// Review is retained.
func NewView(s Source) *View { return newView(s, &s.Review.Object, nil, 0) }

// newView makes a View with a uid in place of the received one, if it is not nil.
func newView(s Source, object *codec.Object, uid []byte, generation int) *View {
	v := views.Get().(*View)
	v.Source, v.Object, v.UID, v.Generation = s, object, s.Review.UID, generation
	s.Review.Retain()
	v.refs.Store(1)
	v.payloads.Reset(s.Review, s.Transcoder)
	if uid != nil {
		v.UID, v.uid = uid, uid
		v.payloads.Renew(uid)
	}
	return v
}

// Mutated returns the next generation, with another object, which must never be
// written again.
func (v *View) Mutated(object *codec.Object) *View {
	return newView(v.Source, object, v.uid, v.Generation+1)
}

// Renewed returns v with another uid, which must never be written again.
func (v *View) Renewed(uid []byte) *View {
	return newView(v.Source, v.Object, uid, v.Generation)
}

// Retain adds a reference and returns v.
func (v *View) Retain() *View {
	if v.refs.Add(1) <= 1 {
		panic("hook: View retained after its last release")
	}
	return v
}

// Release drops one reference. The last one gives back the forms and the Review.
func (v *View) Release() {
	switch n := v.refs.Add(-1); {
	case n > 0:
		return
	case n < 0:
		panic("hook: View released more often than retained")
	}
	v.payloads.Release()
	codec.ReleaseReview(v.Review)
	v.Source, v.Object, v.UID, v.uid, v.resource = Source{}, nil, nil, nil, ""
	views.Put(v)
}

// Resource is what the review is about, such as "apps/deployments".
func (v *View) Resource() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.resource == "" {
		v.resource = string(v.Review.Resource.Group) + "/" + string(v.Review.Resource.Resource)
	}
	return v.resource
}

// payload returns the review in the form f. Making one of a large object takes the
// cluster's turn.
func (v *View) payload(f codec.Form, admitted bool) (*codec.Body, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	mutated := v.mutated()
	if body := v.payloads.Find(f, v.Generation, mutated); body != nil && (body == v.Review.Body || body.Charged()) {
		return body, nil
	}
	size := v.Review.Body.Len()
	if f.Encoding == codec.JSON && f.Coding == codec.Identity {
		size = 0 // copied, which takes as long as to send it
	}
	done, err := v.Account.Turn(v.Cluster, size, v.Until)
	if err != nil {
		return nil, &CallError{Cause: Shed, Err: err}
	}
	defer done()
	body := v.payloads.Get(f, v.Generation, mutated)
	if err := v.Account.Hold(v.Cluster, body, admitted); err != nil {
		return nil, &CallError{Cause: Shed, Err: err}
	}
	return body, nil
}

// Later returns the review in a form that is perhaps never sent. It holds no
// reference of its own.
func (v *View) Later(f codec.Form) codec.Deferred {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.payloads.Later(f, v.Generation, v.mutated())
}

// mutated is the object in place of the received one; nil: there is none.
func (v *View) mutated() []byte {
	if v.Object == &v.Review.Object {
		return nil
	}
	return v.Object.Raw
}
