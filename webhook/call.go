// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Call is one question to one webhook.
type Call struct {
	Target *Target
	// Body is the AdmissionReview to send. The caller keeps its own reference;
	// Client retains the Body for as long as an attempt may read it.
	Body *codec.Body
	// Want is what the answer must fit. Its UID is copied.
	Want codec.Expectation
	// Cluster is sent as the Admission-Cluster header.
	Cluster string
	// Deadline is when the answer must be there: the webhook's own timeout and
	// the time left for the admission, whichever is first.
	Deadline time.Time
}

// Call asks once and returns a verified answer. It fails with a *CallError, or
// with a *codec.AnswerError whose Denies is set. ctx carries shutdown and trace;
// the deadline is the Call's.
func (c *Client) Call(ctx context.Context, call Call) (codec.Response, error) { panic("stub") }
