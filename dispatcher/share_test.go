// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// What a call gets of the time that is left: all but 10 ms, where nobody follows;
// otherwise a tenth is kept for each that follows, at most half. Who is ignored does not
// get more than the given patience then.
func TestShareOfTheDeadline(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		left      time.Duration
		policy    chain.FailurePolicy
		timeout   time.Duration
		following int
		want      time.Duration // of the call
		full      time.Duration // that it might have had
	}{
		{10*s + 10*ms, chain.Fail, 30 * s, 0, 10 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 1, 9 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 4, 6 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 5, 5 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 9, 5 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 2 * s, 9, 2 * s, 2 * s},
		{10*s + 10*ms, chain.Ignore, 30 * s, 0, 10 * s, 30 * s},
		{10*s + 10*ms, chain.Ignore, 30 * s, 1, s, s},
		{10*s + 10*ms, chain.Ignore, 300 * ms, 1, 300 * ms, 300 * ms},
		{s + 10*ms, chain.Ignore, 30 * s, 1, 900 * ms, s},
		{50 * ms, chain.Fail, 30 * s, 0, 45 * ms, 30 * s}, // a tenth, where that is less than 10 ms
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &admission{Request: Request{Deadline: time.Now().Add(c.left)}}
			deadline, full := a.until(&chain.Entry{FailurePolicy: c.policy, Timeout: c.timeout}, c.following, s)
			if got := time.Until(deadline); got != c.want || full != c.full {
				t.Errorf("%+v: it gets %v of %v", c, got, full)
			}
		})
	}
}
