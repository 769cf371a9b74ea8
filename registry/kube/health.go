// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"errors"
	"sync"
	"time"
)

// staleAfter is how long what is cached counts on after the watch broke. It is
// long enough for a restart of the API server behind a load balancer.
const staleAfter = time.Minute

// health says how far the cache of a Source can be believed.
type health struct {
	mu        sync.Mutex
	synced    bool      // everything was listed once
	watching  bool      // a watch is open
	current   time.Time // until when the cache was current; of use while not watching
	lastError error
	stale     bool // as review last said

	credential     error // what is wrong with the credential's files
	credentialTold string
}

// Status is how the namespaces of one cluster are, or the objects of one resource.
type Status struct {
	Cluster    string
	Resource   string    // "": namespaces, with the labels that selectors name
	Synced     bool      // the namespaces were listed once
	Stale      bool      // what is cached does not count: each namespace is asked for
	Current    time.Time // when the cache was last current; zero: never
	Namespaces int       // in the cache
	Objects    int       // that are known, of a resource
	Unkept     int       // of these: each is asked for, because there is no room for it
	Lost       bool      // there are more: nothing is listed that is not asked for
	Bytes      int       // that the others take, with what may be made of them
	LiveGets   uint64    // since the source was made
	LastError  string    // of the list or watch; "" while it goes well. One line, bounded
	Cause      Cause     // of LastError
	// Credential is what is wrong with the credential's files, while the last good
	// one is used; "" while they are good.
	Credential string
}

// String says it in a line that holds nothing of what the API said.
func (s Status) String() string {
	line := cmp.Or(s.Resource, "namespaces") + " of cluster " + s.Cluster + ": "
	switch {
	case !s.Stale:
		line += "watched"
	case s.Current.IsZero():
		line += "never listed"
	default:
		line += "stale since " + s.Current.UTC().Format(time.RFC3339)
	}
	if s.Cause != "" {
		line += ": " + string(s.Cause)
	}
	if s.Credential != "" && s.Cause != CauseCredential {
		line += ": the files of its credential are not good; the last good ones are used"
	}
	return line
}

// connected records a watch that begins, on all that was listed.
func (h *health) connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.synced, h.watching, h.lastError = true, true, nil
}

// disconnected records the end of the watch.
func (h *health) disconnected(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watching {
		h.watching, h.current = false, now
	}
}

// failed records why a list or a watch did not begin.
func (h *health) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastError = err
}

// fresh reports whether the cache counts.
func (h *health) fresh(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isFresh(now)
}

func (h *health) isFresh(now time.Time) bool {
	return h.synced && (h.watching || now.Sub(h.current) <= staleAfter)
}

// review reports whether the cache is stale, and whether that is news. A source
// that has been fresh from the start is none; one that is still being listed for
// the first time is not judged.
func (h *health) review(now time.Time) (stale, changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	stale = !h.isFresh(now)
	if stale && !h.synced && h.lastError == nil {
		return true, false
	}
	changed = stale != h.stale
	h.stale = stale
	return stale, changed
}

// proves records what is wrong with the credential's files, nil: nothing, and
// reports whether that is news.
func (h *health) proves(err error) (news bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.credential = err
	news = text != h.credentialTold
	h.credentialTold = text
	return news
}

// into fills in what the health knows of the status.
func (h *health) into(s *Status, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Synced, s.Stale, s.Current = h.synced, !h.isFresh(now), h.current
	if h.lastError != nil {
		s.LastError, s.Cause = h.lastError.Error(), CauseUnreachable
		if f, ok := errors.AsType[failure](h.lastError); ok {
			s.Cause = f.cause
		}
	}
	if h.credential != nil {
		s.Credential = h.credential.Error()
	}
	if h.watching {
		s.Current = now
	}
}
