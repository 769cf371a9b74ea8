// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// troubled has every kind of trouble.
func troubled(now time.Time) status.Status {
	well := status.Endpoint{State: "closed", Condition: "healthy"}
	refused := &status.LastError{Time: now, Cause: "Unreachable", Text: "connect: connection refused"}
	s := status.Status{
		Now:      now,
		Unready:  []string{"stopping"},
		Snapshot: &status.Snapshot{Short: "abc"},
		Problems: []manifest.Problem{{Reason: "no"}, {Reason: "no"}},
		Targets: []status.Target{
			{ID: "well", URL: "https://well/", Endpoints: []status.Endpoint{well, {Condition: "untried"}}},
			{ID: "half", URL: "https://half/", Endpoints: []status.Endpoint{well, {Condition: "ejected", LastError: refused}}},
			{ID: "spared", URL: "https://spared/", Endpoints: []status.Endpoint{well, {Address: "10.0.0.1:443", Condition: "healthy", OpenCount: 5, Circuits: []status.Circuit{
				{Cluster: "east", State: "open"}, {Cluster: "north", Resource: "apps/deployments", State: "open"}, {Cluster: "west", Resource: "/pods", State: "half-open"}, {Cluster: "west", Resource: "/secrets", State: "open"},
			}}}},
			{ID: "down", URL: "https://down/", Endpoints: []status.Endpoint{{Condition: "ejected", LastError: refused}}},
			{ID: "shadowed", URL: "https://shadowed/", Endpoints: []status.Endpoint{{Condition: "unreachable", LastError: &status.LastError{Time: now, Cause: "TLS", Text: "unknown authority"}}}},
			{ID: "back", URL: "https://back/", Endpoints: []status.Endpoint{{Condition: "recovering", Width: 4, LastError: refused}}},
			{ID: "bad", URL: "https://bad/", Endpoints: []status.Endpoint{{Condition: "failing", LastError: &status.LastError{Time: now, Cause: "HTTPStatus", Text: "HTTP status 500"}}}},
			{ID: "old", URL: "https://old/", LookupError: "no answer from the server", Endpoints: []status.Endpoint{well}},
			{ID: "lost1", URL: "https://lost1/", Unresolved: "lost1: no such host"},
			{ID: "lost2", URL: "https://lost2/", Unresolved: "lost2: no such host"},
		},
		Certificates: []status.Certificate{
			{Role: "admission serving", Subject: "CN=a", NotAfter: now.Add(-time.Hour)},
			{Role: "admin serving", Subject: "CN=b", NotAfter: now.Add(24 * 365 * time.Hour), Refused: "half a file"},
		},
		FailOpens: []status.Decision{{Time: now.Add(-time.Minute), Cluster: "east", Webhooks: []status.Involved{{Configuration: "c", Webhook: "open", Cause: "Timeout"}}}, {Time: now.Add(-time.Hour)}},
		Sheds:     make([]status.Decision, 100),
		Denials:   []status.Decision{{Time: now, Cluster: "west", Unavailable: []status.Involved{{Configuration: "c", Webhook: "slow", Cause: "Timeout"}}}, {Time: now, Cluster: "west"}},
		Pending:   []status.Pending{{Webhook: "c/new", Reason: "refused"}, {Webhook: "c/newer", Reason: "refused", Previous: true}},
		Clusters:  []status.Cluster{{Name: "east", Namespaces: &status.Namespaces{Stale: true, Error: "timeout"}}, {Name: "west", Chain: 1}},
		Chains:    []status.Chain{{Validating: []string{"down", "lost1", "lost2"}}, {Mutating: []string{"lost2", "down2"}}},
		Draining:  []status.Draining{{URL: "https://gone/", Outstanding: 1}},
	}
	for _, t := range s.Targets {
		s.Webhooks = append(s.Webhooks, status.Webhook{ID: t.ID, Configuration: "c", Name: t.ID, Target: t.ID, Mode: "Enforce", OnFailure: status.Deny})
	}
	s.Webhooks = append(s.Webhooks, status.Webhook{ID: "down2", Configuration: "c", Name: "down2", Target: "down", Mode: "Warn", OnFailure: status.Allow})
	s.Webhooks[4].Mode, s.Webhooks[4].OnFailure = "Shadow", status.Nothing
	for i := range s.Sheds {
		s.Sheds[i] = status.Decision{Time: now, Cluster: "west", Webhooks: []status.Involved{{Configuration: "c", Webhook: "full"}}}
	}
	return s
}

// Every kind of trouble is said, the critical first, what has one cause once, with what
// comes of it, the last error and where to look.
func TestNotices(t *testing.T) {
	s := troubled(time.Now())
	var got []string
	for _, n := range s.FindNotices() {
		runbook := path.Base(n.Runbook)
		if n.Runbook == "" {
			runbook = "-"
		} else if _, err := os.Stat("../../docs/runbooks/" + runbook); err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%s: %s | %s | %s | %s %v %v", n.Severity, n.Text, n.Affects, n.Error, strings.TrimSuffix(runbook, ".md"), n.Webhooks, n.Clusters))
	}
	want := []string{
		"critical: Not ready: stopping |  |  | DispatcherAbsent [] []",
		"critical: The last change of the configuration is refused (2 problems); snapshot abc stays |  | no | DispatcherConfigurationRefused [] []",
		"critical: 2 webhooks (c/lost1 and c/lost2) are not callable: no address | Denied in east and west: what c/lost1 and c/lost2 select. | lost1: no such host (and 1 other error) | DispatcherTargetDown [c/lost1 c/lost2] [east west]",
		"critical: 2 webhooks (c/down and c/down2) are not callable: no endpoint of 1 answers (Unreachable) | Denied in east and west: what c/down selects. Allowed with a warning in east and west, unchecked: what c/down2 selects. | connect: connection refused | DispatcherTargetDown [c/down c/down2] [east west]",
		"critical: The certificate CN=a (admission serving) has expired |  |  | DispatcherCertificateExpires [] []",
		"critical: The files of admin serving are refused | Those that were read before are used. | half a file | - [] []",
		"critical: 1 admission failed open in the last ten minutes | They were allowed without c/open, in east. | Timeout | DispatcherFailingOpen [c/open] [east]",
		"critical: at least 100 admissions shed in the last ten minutes | There was no free slot for a call; its failure policy decided. |  | DispatcherShedding [c/full] [west]",
		"warning: Webhook c/shadowed is not callable: no endpoint of 1 answers (TLS) | Only recorded, in mode Shadow in no cluster: what c/shadowed selects. | unknown authority | DispatcherTargetDown [c/shadowed] []",
		"warning: Webhook c/back is recovering: 4 calls at a time | Calls above that fail as if it were down, until enough have been answered. | connect: connection refused | DispatcherBreakerOpen [c/back] []",
		"warning: Webhook c/half is without 1 of 2 endpoints (Unreachable) | The other endpoints are called. | connect: connection refused | DispatcherBreakerOpen [c/half] []",
		"warning: Webhook c/bad is answering badly: the last call failed (HTTPStatus) | It is called on; if calls go on failing, its circuit opens for the cluster or the resource. | HTTP status 500 | - [c/bad] []",
		"warning: Webhook c/old is at a name that cannot be looked up | The addresses of before are called. | no answer from the server | - [c/old] []",
		"warning: Webhook c/spared is not called for east, north (apps/deployments), west (pods) and 1 more | Calls for them fail at once; all others are made. |  | DispatcherBreakerOpenForClusters [c/spared] [east north west]",
		"warning: 1 admission denied in the last ten minutes would have gone on without a webhook whose call failed | Others denied them: nothing got in. Without a verdict were c/slow. | Timeout | - [c/slow] [west]",
		"warning: 2 webhooks (c/new and c/newer) are pending | The previous version of 1 serves meanwhile; the others are not called yet. | refused | DispatcherWebhookPending [c/new c/newer] []",
		"warning: The namespaces of cluster east are stale | Labels of namespaces are asked for one by one; where that fails, webhooks that need them get no verdict. | timeout | DispatcherNamespacesStale [] [east]",
		"warning: https://gone/ is draining: not yet safe to stop | 1 call under way |  | - [] []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// An outage of DNS is one Notice, however many webhooks it concerns.
func TestOutageOfDNS(t *testing.T) {
	s := status.Status{Chains: []status.Chain{{}}}
	for i := range 200 {
		id := fmt.Sprintf("w%03d", i)
		s.Targets = append(s.Targets, status.Target{ID: id, URL: "https://" + id + "/", Unresolved: "look up " + id + ": server misbehaving"})
		s.Webhooks = append(s.Webhooks, status.Webhook{ID: id, Configuration: "c", Name: id, Target: id, Mode: "Enforce", OnFailure: status.Deny})
		s.Chains[0].Validating = append(s.Chains[0].Validating, id)
	}
	for i := range 40 {
		s.Clusters = append(s.Clusters, status.Cluster{Name: fmt.Sprintf("c%02d", i)})
	}
	got := s.FindNotices()
	if len(got) != 1 || len(got[0].Webhooks) != 200 || len(got[0].Clusters) != 40 {
		t.Fatalf("%d notices: %+v", len(got), got)
	}
	want := "200 webhooks (c/w000, c/w001, c/w002 and 197 more) are not callable: no address\n" +
		"Denied in c00, c01, c02 and 37 more: what c/w000, c/w001, c/w002 and 197 more select.\n" +
		"last error: look up w000: server misbehaving (and 199 other errors)"
	if text := strings.Join(got[0].Lines()[:3], "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// A Filter leaves what is about the clusters and webhooks that it names, and about the
// process as a whole.
func TestFilter(t *testing.T) {
	for name, c := range map[string]struct {
		filter                      status.Filter
		webhooks, clusters, notices int
		targets, failOpens          int
	}{
		"nothing":              {status.Filter{}, 11, 2, 18, 10, 2},
		"a webhook":            {status.Filter{Webhook: "c/down"}, 1, 2, 7, 1, 0},
		"a part of a name":     {status.Filter{Webhook: "DOWN"}, 2, 2, 7, 1, 0},
		"a glob":               {status.Filter{Webhook: "*/lost?"}, 2, 2, 7, 2, 0},
		"a cluster":            {status.Filter{Cluster: "west"}, 2, 1, 16, 2, 0},
		"a webhook of another": {status.Filter{Cluster: "west", Webhook: "c/lost1"}, 0, 1, 6, 0, 0},
		"nobody":               {status.Filter{Cluster: "nobody"}, 0, 0, 11, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := troubled(time.Now())
			s.Notices = s.FindNotices()
			c.filter.Apply(&s)
			if got := []int{len(s.Webhooks), len(s.Clusters), len(s.Notices), len(s.Targets), len(s.FailOpens)}; !slices.Equal(got, []int{c.webhooks, c.clusters, c.notices, c.targets, c.failOpens}) {
				t.Errorf("webhooks, clusters, notices, targets, failOpens: %v", got)
			}
		})
	}
}

// What becomes of an admission when a call fails is what the mode makes of the failure
// policy.
func TestOnFailure(t *testing.T) {
	for _, c := range []struct {
		w    status.Webhook
		want string
	}{
		{status.Webhook{OnFailure: status.Deny, Mode: "Enforce"}, "the admission is denied"},
		{status.Webhook{OnFailure: status.Deny, Mode: "Enforce", Retry: true}, "it is called again, and if that fails the admission is denied"},
		{status.Webhook{OnFailure: status.Allow, Mode: "Enforce"}, "the admission is allowed with a warning, without its verdict"},
		{status.Webhook{OnFailure: status.Allow, Mode: "Warn"}, "the admission is allowed with a warning: in mode Warn it never denies"},
		{status.Webhook{OnFailure: status.Nothing, Mode: "Shadow"}, "nothing comes of it: in mode Shadow it never decides"},
	} {
		if got := c.w.OnFailureWords(); got != c.want {
			t.Errorf("%+v: %s", c.w, got)
		}
	}
}
