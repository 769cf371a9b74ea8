// SPDX-License-Identifier: Apache-2.0

// Package transport asks an HTTP server within a deadline, with attempts, hedges,
// retries, breakers and slots. It owns the Targets with their Endpoints and connection
// pools and is the only outbound HTTP of the process.
package transport

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// Target is where a webhook is served: the stable identity with an atomically
// replaced list of Endpoints. It is safe for concurrent use.
type Target struct {
	identity Identity
	url      string
	host     string // the URL's, with its port if it has one: the Host header
	head     head
	origins  []origin // what Endpoints come from

	resolving sync.Mutex // held by whoever replaces endpoints
	endpoints atomic.Pointer[[]*Endpoint]
	lastErr   atomic.Pointer[error]
	closed    atomic.Bool

	breaking breaker.Settings
	unspared bool // no breaker is asked
	latency  latency
	kept     sync.Map // what protocols keep
	callers  callers
	stats    stats
}

// NewTarget compiles a spec. It starts nothing and dials nothing; the Target has
// no Endpoints until a Resolver has seen it.
func NewTarget(spec TargetSpec) (*Target, error) {
	u, err := url.Parse(spec.URL)
	if err != nil {
		return nil, fmt.Errorf("parse the webhook's URL: %w", err)
	}
	if u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not an https URL of host and path alone", u.Redacted())
	}
	t := &Target{identity: spec.Identity(), url: spec.URL, host: u.Host}
	authorize := ""
	if spec.BearerToken != "" {
		authorize = "Bearer " + spec.BearerToken
	}
	if strings.ContainsFunc(authorize, unicode.IsControl) {
		return nil, errors.New("the bearer token has a line break or another control character")
	}
	t.head = newHead(u.Host, PathOf(u), authorize)
	t.unspared = spec.Breaker.Off
	t.breaking = breaker.Settings{
		FailureRatio: spec.Breaker.FailureRatio,
		MinRequests:  spec.Breaker.MinRequests,
		OpenTime:     spec.Breaker.OpenTime,
	}
	endpoints := spec.Endpoints
	if len(endpoints) == 0 {
		endpoints = []EndpointSpec{{Address: net.JoinHostPort(u.Hostname(), portOf(u))}}
	}
	for _, e := range endpoints {
		o, err := newOrigin(&spec, &e, u.Hostname())
		if err != nil {
			return nil, err
		}
		t.origins = append(t.origins, o)
	}
	return t, nil
}

// sharedBy says how many processes call t. It counts before t has an Endpoint, so
// before anybody calls, and whoever calls it holds resolving.
func (t *Target) sharedBy(replicas func() int) {
	if t.Endpoints() == nil {
		t.callers.burst.replicas = replicas
	}
}

// Identity returns the identity of the spec that t was made from.
func (t *Target) Identity() Identity { return t.identity }

// Host returns the host of the URL, with its port if it has one.
func (t *Target) Host() string { return t.host }

// Keep returns what a protocol keeps with the Target under a key of its own, made by
// fresh if there is nothing.
func (t *Target) Keep(key any, fresh func() any) any {
	kept, ok := t.kept.Load(key)
	if !ok {
		kept, _ = t.kept.LoadOrStore(key, fresh())
	}
	return kept
}

// URL returns the URL of the spec.
func (t *Target) URL() string { return t.url }

// Endpoints returns the current Endpoints. The slice is read-only.
func (t *Target) Endpoints() []*Endpoint {
	if list := t.endpoints.Load(); list != nil {
		return *list
	}
	return nil
}

// CertificateExpiry returns when the client certificate expires; zero: there is
// none.
func (t *Target) CertificateExpiry() time.Time {
	if certificates := t.origins[0].tls.Certificates; len(certificates) > 0 && certificates[0].Leaf != nil {
		return certificates[0].Leaf.NotAfter
	}
	return time.Time{}
}

// Close closes the idle connections of all Endpoints. Calls under way finish;
// their connections are closed when they turn idle.
func (t *Target) Close() {
	t.closed.Store(true)
	for _, e := range t.Endpoints() {
		e.connections.close()
	}
}

// Outstanding returns the number of attempts under way at all Endpoints.
func (t *Target) Outstanding() int {
	n := 0
	for _, e := range t.Endpoints() {
		n += e.Outstanding()
	}
	return n
}

// Connections returns the number of open connections to all Endpoints.
func (t *Target) Connections() int {
	n := 0
	for _, e := range t.Endpoints() {
		n += e.connections.count()
	}
	return n
}

// Latency returns the latencies as of now. It costs some microseconds, and is
// for people, not for the way of a call.
func (t *Target) Latency() Latency { return t.latency.summary(time.Now()) }

// choose returns the first Endpoint, as balance orders them, whose breaker lets an
// attempt of a cluster about a resource. ok is false where there is none. Of circuits
// that change thereby, tell notifies.
func (t *Target) choose(cluster, resource string, avoid []*Endpoint) (e *Endpoint, ticket breaker.Ticket, ok bool) {
	var buf [8]*Endpoint
	order := append(buf[:0], t.Endpoints()...)
	balance(order, avoid)
	if t.unspared && len(order) > 0 {
		return order[0], ticket, true
	}
	for _, e := range order {
		if ticket, ok := e.breaker.Allow(cluster, resource); ok {
			return e, ticket, true
		}
	}
	for _, e := range order {
		if ticket, ok := e.breaker.AllowForced(cluster, resource); ok {
			return e, ticket, true
		}
	}
	return nil, ticket, false
}

// tell notifies of circuits that have changed as somebody chose an Endpoint.
func (t *Target) tell() {
	for _, e := range t.Endpoints() {
		e.breaker.Tell()
	}
}

// isReachable reports whether an Endpoint's own circuit lets attempts through.
func (t *Target) isReachable() bool {
	for _, e := range t.Endpoints() {
		if s := e.breaker.State(); s == breaker.Closed || s == breaker.Ramping {
			return true
		}
	}
	return false
}

// added returns the Endpoints of the list that t does not have, if it has others that
// can be called meanwhile.
func (t *Target) added(list []*Endpoint) (added []*Endpoint) {
	before := t.Endpoints()
	for _, e := range list {
		if len(before) > 0 && !slices.Contains(before, e) {
			added = append(added, e)
		}
	}
	return added
}

// endpointsOf returns the Endpoints that t has from o.
func (t *Target) endpointsOf(o *origin) []*Endpoint {
	var list []*Endpoint
	for _, e := range t.Endpoints() {
		if e.origin == o {
			list = append(list, e)
		}
	}
	return list
}

// replace swaps in a list of Endpoints and closes the idle connections of those
// that left; their calls finish.
func (t *Target) replace(list []*Endpoint) {
	before := t.Endpoints()
	if slices.Equal(before, list) {
		return
	}
	t.endpoints.Store(&list)
	if t.closed.Load() { // Close has not seen these
		t.Close()
	}
	for _, e := range before {
		if !slices.Contains(list, e) {
			e.connections.close()
		}
	}
}

// Unresolved returns why t has no Endpoint, or nil if it has any.
func (t *Target) Unresolved() error {
	if len(t.Endpoints()) > 0 {
		return nil
	}
	return t.whyNoEndpoint()
}

// LookupError returns why the last lookup of an address failed, while the Endpoints of
// before are called; nil: it did not, or there is none yet.
func (t *Target) LookupError() error {
	if last := t.lastErr.Load(); last != nil {
		return *last
	}
	return nil
}

var errNotResolved = errors.New("its address has not been looked up yet")

// whyNoEndpoint says why t has nothing to dial.
func (t *Target) whyNoEndpoint() error {
	err := errNotResolved
	if last := t.lastErr.Load(); last != nil {
		err = *last
	}
	return fmt.Errorf("%s: %w", t.host, err)
}

// stats count what a Target's calls did.
type stats struct {
	attempts, retries, hedges, refused, disagreements, misread atomic.Int64
}

// Stats are counts since the Target was made.
type Stats struct {
	Attempts      int64 // all, with Retries and Hedges
	Retries       int64
	Hedges        int64
	BudgetRefused int64 // extra attempts that were not made for want of budget
	Disagreements int64 // twins of one call whose verdicts differ
	Misread       int64 // calls whose webhook did not read what it had said that it reads
}

// Stats returns the counts as of now.
func (t *Target) Stats() Stats {
	return Stats{
		Attempts:      t.stats.attempts.Load(),
		Retries:       t.stats.retries.Load(),
		Hedges:        t.stats.hedges.Load(),
		BudgetRefused: t.stats.refused.Load(),
		Disagreements: t.stats.disagreements.Load(),
		Misread:       t.stats.misread.Load(),
	}
}
