// SPDX-License-Identifier: Apache-2.0

// Package codec turns bytes into admissions and back: it scans an
// AdmissionReview in one strict pass, verifies what a webhook answered and
// encodes the merged answer. It knows neither HTTP nor the registry.
package codec

import (
	"sync"
	"sync/atomic"
)

// Version is a version of the AdmissionReview envelope that we speak.
type Version uint8

// The versions of admission.k8s.io. The zero Version is none.
const (
	V1 Version = iota + 1
	V1beta1
)

// ParseVersion returns the Version of an entry of admissionReviewVersions,
// such as "v1". ok is false for a version that we do not speak.
func ParseVersion(s string) (v Version, ok bool) {
	switch s {
	case "v1":
		return V1, true
	case "v1beta1":
		return V1beta1, true
	}
	return 0, false
}

// String returns the version as admissionReviewVersions spells it.
func (v Version) String() string {
	switch v {
	case V1:
		return "v1"
	case V1beta1:
		return "v1beta1"
	}
	return "unknown"
}

// APIVersion returns the version as apiVersion spells it.
func (v Version) APIVersion() string {
	switch v {
	case V1:
		return "admission.k8s.io/v1"
	case V1beta1:
		return "admission.k8s.io/v1beta1"
	}
	return "admission.k8s.io/unknown"
}

// Operation is what the user asked the API server to do. The zero Operation is
// none of them and is never in a decoded Review.
type Operation uint8

// The operations of admission.k8s.io.
const (
	Create Operation = iota + 1
	Update
	Delete
	Connect
)

// String returns the operation as the API spells it.
func (o Operation) String() string {
	switch o {
	case Create:
		return "CREATE"
	case Update:
		return "UPDATE"
	case Delete:
		return "DELETE"
	case Connect:
		return "CONNECT"
	}
	return "UNKNOWN"
}

// GroupVersionKind names a kind. The bytes are borrowed from the Review.
type GroupVersionKind struct{ Group, Version, Kind []byte }

// GroupVersionResource names a resource. The bytes are borrowed from the Review.
type GroupVersionResource struct{ Group, Version, Resource []byte }

// ExtraValue is one key of userInfo.extra with its values. The bytes are
// borrowed from the Review.
type ExtraValue struct {
	Key    []byte
	Values [][]byte
}

// UserInfo is who made the request. The bytes are borrowed from the Review.
type UserInfo struct {
	Username, UID []byte
	Groups        [][]byte
	Extra         []ExtraValue
}

// Review is an incoming AdmissionReview, as a scanned view over its Body.
// Decode fills it; all byte slices of a Review and of what hangs off it point
// into the Body or into scratch memory of the Review and are valid until the last
// ReleaseReview. Whoever keeps any of it longer retains the Review, or copies.
type Review struct {
	Body     *Body
	Encoding Encoding // of Body
	Version  Version

	UID                                 []byte
	Kind, RequestKind                   GroupVersionKind
	Resource, RequestResource           GroupVersionResource
	SubResource                         []byte
	RequestSubResource                  []byte
	Name, Namespace                     []byte
	Operation                           Operation
	User                                UserInfo
	Object, OldObject                   Object
	DryRun                              bool
	Options                             []byte   // raw JSON, nil when null or absent
	HasRequestResource                  bool     // requestKind and requestResource were present
	apiVersionSpan, uidSpan, objectSpan span     // of the values in Body, for splicing
	has                                 presence // what was there and what was filled in
	requestSubResource                  []byte   // as it came

	retained atomic.Int32 // references beside the first

	scratch []byte   // unescaped strings
	values  [][]byte // of User.Extra
}

var reviews = sync.Pool{New: func() any { return new(Review) }}

// AcquireReview returns an empty Review from the pool.
func AcquireReview() *Review { return reviews.Get().(*Review) }

// Retain adds a reference to r, to be given back with ReleaseReview.
func (r *Review) Retain() { r.retained.Add(1) }

// ReleaseReview drops a reference. With the last one the Review's Body is released
// and r returns to the pool: nothing borrowed from r may be used afterwards.
func ReleaseReview(r *Review) {
	if r.retained.Add(-1) >= 0 {
		return
	}
	if r.Body != nil {
		r.Body.Release()
	}
	r.reset()
	reviews.Put(r)
}

// What a pooled Review keeps of its slices: room for every ordinary review (a
// service account has 4 groups and 2 extras, an object rarely 30 labels). What an
// extraordinary one needed goes back to the collector.
const (
	maxPooledGroups  = 256
	maxPooledExtra   = 64
	maxPooledLabels  = 256
	maxPooledScratch = 16 << 10
)

// reset empties r, keeping memory for the next review but no reference to this
// one's.
func (r *Review) reset() {
	*r = Review{
		User: UserInfo{
			Groups: emptied(r.User.Groups, maxPooledGroups),
			Extra:  emptied(r.User.Extra, maxPooledExtra),
		},
		Object:    Object{Labels: emptied(r.Object.Labels, maxPooledLabels)},
		OldObject: Object{Labels: emptied(r.OldObject.Labels, maxPooledLabels)},
		scratch:   emptied(r.scratch, maxPooledScratch),
		values:    emptied(r.values, maxPooledExtra),
	}
}

// emptied returns s without elements, or nil if it has room for more than most.
func emptied[E any](s []E, most int) []E {
	if cap(s) > most {
		return nil
	}
	clear(s)
	return s[:0]
}

// form is the form that r was received in.
func (r *Review) form() Form { return Form{Version: r.Version, Encoding: r.Encoding} }

// span is a half-open range of a Body's bytes.
type span struct{ start, end int }
