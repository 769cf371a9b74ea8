// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// AccessResult is what came of a question to a cluster's authorizer. The set is closed.
type AccessResult string

// The results.
const (
	AccessAllowed AccessResult = "allowed" // by a request, as are the next two
	AccessDenied  AccessResult = "denied"  // or no opinion
	AccessFailed  AccessResult = "failed"  // no answer
	AccessCached  AccessResult = "cached"  // an answer of late, or to another who asked the same
	AccessShed    AccessResult = "shed"    // too many ask
)

func resultOf(status *authorizationv1.SubjectAccessReviewStatus, err error) AccessResult {
	switch {
	case err != nil:
		return AccessFailed
	case status.Allowed:
		return AccessAllowed
	}
	return AccessDenied
}

// Authorizers is the table of the clusters' authorizers. It is safe for concurrent use.
type Authorizers struct {
	cfg AuthorizersConfig

	mu   sync.Mutex
	made int
	open map[string][]*Authorizer // by cluster
}

// AuthorizersConfig is the configuration of Authorizers.
type AuthorizersConfig struct {
	// Allowed, if not nil, returns why an address may not be dialled (E2).
	Allowed func(netip.AddrPort) error
	// Asked, if not nil, is called for each question, with how long the answer took.
	Asked func(cluster string, came AccessResult, took time.Duration)
}

// NewAuthorizers returns Authorizers without any. It starts nothing.
func NewAuthorizers(cfg AuthorizersConfig) *Authorizers {
	return &Authorizers{cfg: cfg, open: map[string][]*Authorizer{}}
}

// Authorizer returns the one that is open for this cluster and access, with what it knows,
// or else a new one, which the registry opens. It serves compile.Options.
func (t *Authorizers) Authorizer(cluster string, access manifest.KubeAccess) chain.AuthorizerSource {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.open[cluster] {
		if a.access == access {
			return a
		}
	}
	t.made++
	return newAuthorizer(t, t.made, cluster, access)
}

// opened and closed keep the list of those that are open.
func (t *Authorizers) opened(a *Authorizer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[a.cluster] = append(t.open[a.cluster], a)
}

func (t *Authorizers) closed(a *Authorizer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := slices.DeleteFunc(t.open[a.cluster], func(other *Authorizer) bool { return other == a })
	if t.open[a.cluster] = left; len(left) == 0 {
		delete(t.open, a.cluster)
	}
}

// AuthorizerStatus is how the authorizer of one cluster is asked.
type AuthorizerStatus struct {
	Cluster string
	// Answered are the questions, since it was made, that a request has answered, Cached
	// those that needed none. Failed have no answer, and Shed were not asked.
	Answered, Cached, Failed, Shed uint64
	Waiting                        int    // who wait for an answer
	LastError                      string // of the last request that failed; "": none has since one was answered. One line, bounded
}

// Status returns those that are open, sorted by cluster. While one follows another it is
// the newer one that counts.
func (t *Authorizers) Status() []AuthorizerStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []AuthorizerStatus
	for _, list := range t.open {
		newest := slices.MaxFunc(list, func(a, b *Authorizer) int { return cmp.Compare(a.number, b.number) })
		all = append(all, newest.status())
	}
	slices.SortFunc(all, func(a, b AuthorizerStatus) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}

// accessTally counts what came of questions.
type accessTally struct {
	mu                               sync.Mutex
	answered, cached, failures, shed uint64
	lastError                        error
}

// failed records why a request had no answer.
func (c *accessTally) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastError = err
}

func (c *accessTally) add(came AccessResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch came {
	case AccessAllowed, AccessDenied:
		c.answered++
		c.lastError = nil
	case AccessFailed:
		c.failures++
	case AccessCached:
		c.cached++
	case AccessShed:
		c.shed++
	}
}

func (a *Authorizer) record(came AccessResult, took time.Duration) {
	a.tally.add(came)
	if a.of.cfg.Asked != nil {
		a.of.cfg.Asked(a.cluster, came, took)
	}
}

func (a *Authorizer) status() AuthorizerStatus {
	c := &a.tally
	c.mu.Lock()
	defer c.mu.Unlock()
	s := AuthorizerStatus{Cluster: a.cluster, Answered: c.answered, Cached: c.cached, Failed: c.failures, Shed: c.shed, Waiting: len(a.askers)}
	if c.lastError != nil {
		s.LastError = c.lastError.Error()
	}
	return s
}
