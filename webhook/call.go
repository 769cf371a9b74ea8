// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Call is one question to one webhook.
type Call struct {
	Target *Target
	// Body is the AdmissionReview to send. The caller keeps its own reference;
	// Client retains the Body for as long as an attempt may read it.
	Body *codec.Body
	// Want is what the answer must fit. Its UID must not change before the
	// deadline: an attempt that lost its race still verifies what it gets.
	Want codec.Expectation
	// Cluster is sent as the Admission-Cluster header.
	Cluster string
	// Resource is what the review is about, such as "apps/deployments": failures
	// on one resource do not keep the webhook from being asked about others.
	Resource string
	// Deadline is when the answer must be there: the webhook's own timeout and
	// the time left for the admission, whichever is first.
	Deadline time.Time
	Repeat   Repeat
}

// Call asks, perhaps more than once, and returns a verified answer. It fails with
// a *CallError, or with a *codec.AnswerError whose Denies is set. ctx carries
// shutdown and trace; the deadline is the Call's, and Call returns by then. A
// hedge that lost may run on, to the deadline; Wait waits for those.
func (c *Client) Call(_ context.Context, call Call) (codec.Response, error) {
	start := time.Now()
	if !start.Before(call.Deadline) {
		return codec.Response{}, noTimeLeft()
	}
	body := call.Body.Retain()
	defer body.Release()
	r := race{call: &call, attempt: c.attempt, losers: &c.losers}
	resp, err := r.run(start)
	var unusable *CallError
	if errors.As(err, &unusable) {
		unusable.Elapsed = time.Since(start)
	}
	return resp, err
}

// Wait returns when no attempt runs any more. It must not race with Call.
func (c *Client) Wait() { c.losers.Wait() }
