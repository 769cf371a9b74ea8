// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Every kind of trouble is said, the critical first.
func TestNotices(t *testing.T) {
	now := time.Now()
	closed := status.Endpoint{State: "closed"}
	s := status.Status{
		Now:      now,
		Unready:  []string{"stopping"},
		Snapshot: &status.Snapshot{Short: "abc"},
		Problems: []manifest.Problem{{Reason: "no"}, {Reason: "no"}},
		Targets: []status.Target{
			{URL: "https://well/", Endpoints: []status.Endpoint{closed}},
			{URL: "https://half/", Endpoints: []status.Endpoint{closed, {State: "half-open"}}},
			{URL: "https://spared/", Endpoints: []status.Endpoint{closed, {Address: "10.0.0.1:443", State: "closed", OpenCount: 5, Circuits: []status.Circuit{
				{Cluster: "east", State: "open"}, {Cluster: "north", Resource: "apps/deployments", State: "open"}, {Cluster: "west", Resource: "/pods", State: "half-open"}, {Cluster: "west", Resource: "/secrets", State: "open"},
			}}}},
			{URL: "https://down/", Endpoints: []status.Endpoint{{State: "open"}}},
			{URL: "https://lost/", Unresolved: "no such host"},
		},
		Certificates: []status.Certificate{
			{Role: "admission serving", Subject: "CN=a", NotAfter: now.Add(-time.Hour)},
			{Role: "admin serving", Subject: "CN=b", NotAfter: now.Add(24 * 365 * time.Hour), Refused: "half a file"},
		},
		FailOpens: []status.Decision{{Time: now.Add(-time.Minute)}, {Time: now.Add(-time.Hour)}},
		Sheds:     make([]status.Decision, 100),
		Pending:   []status.Pending{{Webhook: "c/w", Reason: errors.New("refused").Error()}},
		Clusters:  []status.Cluster{{Name: "east", Namespaces: &status.Namespaces{Stale: true}}, {Name: "west"}},
		Draining:  []status.Draining{{URL: "https://gone/"}},
	}
	for i := range s.Sheds {
		s.Sheds[i].Time = now
	}
	want := []status.Notice{
		{Critical: true, Text: "Not ready: stopping"},
		{Critical: true, Text: "The last change of the configuration is refused (2 problems); snapshot abc stays"},
		{Critical: true, Text: "https://down/: no endpoint of 1 is healthy"},
		{Critical: true, Text: "https://lost/ has no endpoint: no such host"},
		{Critical: true, Text: "The certificate CN=a (admission serving) has expired"},
		{Critical: true, Text: "The files of admin serving are refused: half a file"},
		{Critical: true, Text: "1 admission failed open in the last ten minutes"},
		{Critical: true, Text: "at least 100 admissions shed in the last ten minutes"},
		{Text: "https://half/: 1 of 2 endpoints are spared"},
		{Text: "https://spared/ at 10.0.0.1:443 is not called for east, north (apps/deployments), west (pods) and 2 more"},
		{Text: "Webhook c/w is pending: refused"},
		{Text: "The namespaces of cluster east are stale"},
		{Text: "https://gone/ is draining: not yet safe to stop"},
	}
	if diff := cmp.Diff(want, s.Notices()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
