// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Call is a review that has arrived, and the way back.
type Call struct {
	http.ResponseWriter
	Request *http.Request // its body is read
	Body    []byte
	Review  Review

	over <-chan struct{}
}

// Review is what most webhooks want to know of an AdmissionReview.
type Review struct {
	APIVersion string
	Request    struct {
		UID      string
		Kind     struct{ Group, Version, Kind string }
		Resource struct{ Group, Version, Resource string }
		Object   json.RawMessage
	}
}

// UID is that of the review.
func (c *Call) UID() string { return c.Review.Request.UID }

// Hang returns when the caller has gone, or the server ends.
func (c *Call) Hang() {
	select {
	case <-c.Request.Context().Done():
	case <-c.over:
	}
}

// Wait returns after that time, or when the server ends.
func (c *Call) Wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.over:
	}
}

// Respond answers with a review of the version that has come, with the members of
// its response beside the uid, such as `"allowed":true`.
func (c *Call) Respond(members string) {
	c.Send(http.StatusOK, fmt.Appendf(nil, `{"apiVersion":%q,"kind":"AdmissionReview","response":{"uid":%q,%s}}`, c.Review.APIVersion, c.UID(), members))
}

// Send answers with a body that says to be JSON.
func (c *Call) Send(status int, body []byte) {
	c.Header().Set("Content-Type", "application/json")
	c.WriteHeader(status)
	_, _ = c.Write(body) // the caller may have gone
}
