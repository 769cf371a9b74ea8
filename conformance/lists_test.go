// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"
)

// lists are all published lists of cases, by the function that returns each, and
// how they are played: as k8s.io/apiserver's own tests play them. A list of
// validating cases is played with the mutating plugin too, where those tests do so.
var lists = map[string]func(s *publishedServers) []published{
	"NewNonMutatingTestCases": func(s *publishedServers) []published {
		var cases []published
		for _, tt := range webhooktesting.NewNonMutatingTestCases(s.plain) {
			cases = append(cases, s.validating(tt))
		}
		return cases
	},
	"ConvertToMutatingTestCases": func(s *publishedServers) []published {
		return s.mutating(webhooktesting.ConvertToMutatingTestCases(webhooktesting.NewNonMutatingTestCases(s.plain), configurationName))
	},
	"NewMutatingTestCases": func(s *publishedServers) []published {
		return s.mutating(webhooktesting.NewMutatingTestCases(s.plain, configurationName))
	},
	// The API server panics where it looks for its credentials. The webhooks of the
	// cases behind the first do fail by themselves.
	"NewNonMutatingPanicTestCases": func(s *publishedServers) []published {
		var cases []published
		for _, tt := range webhooktesting.NewNonMutatingPanicTestCases(s.plain) {
			c := s.validating(tt)
			c.panics = "Start panicking!"
			cases = append(cases, c)
		}
		return cases
	},
	// What is published beside the verdict is how often the plugin asks for
	// credentials, which is nothing that a caller or a webhook can see.
	"NewCachedClientTestcases": func(s *publishedServers) []published {
		var cases []published
		for _, tt := range webhooktesting.NewCachedClientTestcases(s.plain) {
			cases = append(cases, s.both(published{name: tt.Name, validating: tt.Webhooks, server: s.plain}, false)...)
		}
		return cases
	},
	// Each webhook that is called moves a clock, so that a duration tells which
	// webhooks were called: what does not match, and any in a dry run, must not be.
	"NewValidationDurationTestCases": func(s *publishedServers) []published {
		var cases []published
		for _, tt := range webhooktesting.NewValidationDurationTestCases(s.stepping) {
			c := published{name: tt.Name, validating: tt.Webhooks, server: s.stepping}
			if tt.InitContext {
				c.took = &took{clock: s.clock, least: tt.ExpectedDurationMax, most: tt.ExpectedDurationSum}
			}
			cases = append(cases, s.both(c, tt.IsDryRun)...)
		}
		return cases
	},
}

// configurationName is the name that the published data source gives.
const configurationName = "test-webhooks"

// TestEveryListIsPlayed fails if k8s.io/apiserver publishes a list of cases that is
// not among lists.
func TestEveryListIsPlayed(t *testing.T) {
	const published = "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", published).Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && returnsCases(f) {
				found[f.Name.Name] = true
			}
		}
	}
	for name := range found {
		if lists[name] == nil {
			t.Errorf("%s.%s is not played", published, name)
		}
	}
	for name := range lists {
		if !found[name] {
			t.Errorf("%s.%s is gone, or no longer recognised", published, name)
		}
	}
}

// returnsCases reports whether a function returns cases, by its type or its name.
func returnsCases(f *ast.FuncDecl) bool {
	if name := strings.ToLower(f.Name.Name); strings.HasSuffix(name, "testcases") || strings.HasSuffix(name, "tests") {
		return true
	}
	if f.Type.Results == nil {
		return false
	}
	for _, result := range f.Type.Results.List {
		if slice, ok := result.Type.(*ast.ArrayType); ok {
			if of, ok := slice.Elt.(*ast.Ident); ok && strings.HasSuffix(of.Name, "Test") {
				return true
			}
		}
	}
	return false
}

// publishedServers are the published webhooks.
type publishedServers struct {
	plain    *url.URL
	stepping *url.URL // each call moves clock
	clock    *clocktesting.FakeClock
}

func startPublished(t *testing.T) *publishedServers {
	t.Helper()
	start := func(server *httptest.Server) *url.URL {
		server.StartTLS()
		t.Cleanup(server.Close)
		address, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return address
	}
	clock := clocktesting.NewFakeClock(time.Time{})
	return &publishedServers{
		plain:    start(webhooktesting.NewTestServer(t)),
		stepping: start(webhooktesting.NewTestServerWithHandler(t, webhooktesting.ClockSteppingWebhookHandler(t, clock))),
		clock:    clock,
	}
}

func (s *publishedServers) validating(tt webhooktesting.ValidatingTest) published {
	return published{
		name: tt.Name, kind: "Validating", validating: tt.Webhooks, server: s.plain, contains: tt.ErrorContains,
		attributes: func() admission.Attributes { return webhooktesting.NewAttribute(namespace, nil, tt.IsDryRun) },
	}
}

func (s *publishedServers) mutating(tests []webhooktesting.MutatingTest) []published {
	var cases []published
	for _, tt := range tests {
		cases = append(cases, published{
			name: tt.Name, kind: "Mutating", mutating: tt.Webhooks, server: s.plain, contains: tt.ErrorContains,
			attributes: func() admission.Attributes {
				if tt.IsCRD {
					return webhooktesting.NewAttributeUnstructured(namespace, tt.AdditionalLabels, tt.IsDryRun)
				}
				return webhooktesting.NewAttribute(namespace, tt.AdditionalLabels, tt.IsDryRun)
			},
		})
	}
	return cases
}

// both is a case of validating webhooks, and the same of mutating ones.
func (s *publishedServers) both(c published, dryRun bool) []published {
	unknown := admissionregistrationv1.SideEffectClassUnknown
	for i := range c.validating {
		if c.validating[i].SideEffects == nil {
			c.validating[i].SideEffects = &unknown // as the API stores it
		}
	}
	c.attributes = func() admission.Attributes { return webhooktesting.NewAttribute(namespace, nil, dryRun) }
	m := c
	c.kind = "Validating"
	m.kind, m.validating, m.mutating = "Mutating", nil, webhooktesting.ConvertToMutatingWebhooks(c.validating)
	if m.took != nil {
		m.took = &took{clock: c.took.clock, least: c.took.most, most: c.took.most} // one after the other
	}
	return []published{c, m}
}

// took is how long the API server may wait for webhooks, by a clock that they move.
type took struct {
	clock       *clocktesting.FakeClock
	least, most time.Duration
}

// in has the API server measure.
func (d *took) in(ctx context.Context) context.Context {
	if d == nil {
		return ctx
	}
	return request.WithLatencyTrackersAndCustomClock(ctx, d.clock)
}

func (d *took) check(ctx context.Context, t *testing.T) {
	t.Helper()
	trackers, ok := request.LatencyTrackersFrom(ctx)
	if ok != (d != nil) {
		t.Fatalf("measured: %t", ok)
	}
	if !ok {
		return
	}
	if got := trackers.MutatingWebhookTracker.GetLatency() + trackers.ValidatingWebhookTracker.GetLatency(); got < d.least || got > d.most {
		t.Errorf("the webhooks took %v, want %v to %v", got, d.least, d.most)
	}
}
