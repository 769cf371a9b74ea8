// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	var h health
	at := time.Unix(1000, 0)
	expect := func(when string, stale, news bool) {
		t.Helper()
		if h.fresh(at) == stale {
			t.Errorf("%s: fresh is %t", when, !stale)
		}
		if gotStale, gotNews := h.review(at); gotStale != stale || gotNews != news {
			t.Errorf("%s: stale %t, news %t; want %t, %t", when, gotStale, gotNews, stale, news)
		}
	}
	expect("being listed for the first time", true, false)
	h.failed(errors.New("refused"))
	expect("a first list that failed", true, true)
	h.connected()
	expect("watching", false, true)
	at = at.Add(time.Hour)
	expect("watching in silence", false, false)
	h.disconnected(at)
	h.disconnected(at.Add(time.Hour)) // only the first end counts
	at = at.Add(staleAfter)
	expect("just broken", false, false)
	at = at.Add(1)
	expect("broken for long", true, true)
	expect("still broken", true, false)
	h.connected()
	expect("watching again", false, true)
}

func TestStatusInALine(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, s := range map[string]Status{
		"namespaces of cluster a: watched":                                                                        {Cluster: "a", Synced: true},
		"namespaces of cluster a: never listed: the API cannot be reached":                                        {Cluster: "a", Stale: true, LastError: "words", Cause: CauseUnreachable},
		"namespaces of cluster a: stale since 2026-01-02T03:04:05Z: the API answers with an error":                {Cluster: "a", Stale: true, Current: now, LastError: "words", Cause: CauseStatus},
		"namespaces of cluster a: watched: the files of its credential are not good; the last good ones are used": {Cluster: "a", Synced: true, Credential: "words"},
	} {
		if got := s.String(); strings.TrimSpace(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
