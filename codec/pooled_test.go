// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// What is pooled has nothing of its last use: every field is zero, those too that nobody
// has thought of yet, and so is what slices have room for.
func TestPooledIsEmpty(t *testing.T) {
	const room = "Reader.Scanner.closers[]" // that the next document overwrites
	a := new(answer)
	pooled.Check(t, a, a.release, "lenient."+room)
	d := new(decoder)
	pooled.Check(t, d, d.release, "strict."+room)
	r := new(Review)
	pooled.Check(t, r, func() {
		r.Body = nil
		r.retained.Store(0)
		ReleaseReview(r)
	}, "retained")
	b := new(Body)
	pooled.Check(t, b, func() {
		b.free, b.account = func([]byte) {}, uncounted{}
		b.refs.Store(1)
		b.Release()
	})
	f := new(Forms) // which a View uses for the next object
	pooled.Check(t, f, f.Release, "Review", "Object", "UID", "Transcoder", "room")
}

// uncounted is an Account that counts nothing.
type uncounted struct{}

func (uncounted) Freed(int) {}
