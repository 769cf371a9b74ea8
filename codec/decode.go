// SPDX-License-Identifier: Apache-2.0

package codec

// AcquireReview returns an empty Review from the pool.
func AcquireReview() *Review { panic("stub") }

// ReleaseReview releases the Review's Body and returns r to the pool. Nothing
// borrowed from r may be used afterwards.
func ReleaseReview(r *Review) { panic("stub") }

// Decode fills r from body in one strict pass and retains body until
// ReleaseReview. It fails with an *EnvelopeError, or with a *RequestError when
// at least the version and the uid are set (requests.md B1 to B25).
func (r *Review) Decode(body *Body) error { panic("stub") }

// ScanObject fills o with what admission reads of the object raw, strictly as
// Decode does for the objects in a Review. o borrows from raw. It fails with a
// *RequestError.
func ScanObject(o *Object, raw []byte) error { panic("stub") }
