// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/tracing"
)

func TestWaterfall(t *testing.T) {
	begin := time.Unix(0, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	var out strings.Builder
	printWaterfall(&out, "a story", []tracing.Span{
		{Name: "POST /v1", ID: "1", Parent: "0", Start: at(0), End: at(48), Attributes: map[string]string{"admission.decision": "allowed"}},
		{Name: "webhook a", ID: "2", Parent: "1", Start: at(12), End: at(24), Attributes: map[string]string{"admission.outcome": "allowed"}},
		{Name: "POST", ID: "3", Parent: "2", Start: at(24), End: at(60), Attributes: map[string]string{"admission.attempt.kind": "hedge", "admission.attempt.lost": "true", "http.response.status_code": "200"}},
	})
	const want = `
One of them as its trace: a story, 48ms

  POST /v1                                       |================================================|     48ms  allowed
    webhook a                                    |            ============                        |     12ms  allowed
      hedge attempt                              |                        ========================|     36ms  HTTP 200 (lost)
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
