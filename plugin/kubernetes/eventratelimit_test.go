// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// event is an Event of a source about an object.
func event(component, host, object string) string {
	return fmt.Sprintf("{metadata: {name: web}, source: {component: %s, host: %s}, involvedObject: {kind: Pod, namespace: shop, name: %s, uid: u, apiVersion: v1}}", component, host, object)
}

// passes asks about requests in turn, and fails the test unless so many pass.
func (p asked) passes(want int, list ...request) {
	p.t.Helper()
	got := 0
	for _, q := range list {
		q.resource, q.kind = "events", "Event"
		if p.validate(q).Allowed {
			got++
		}
	}
	if got != want {
		p.t.Errorf("%d of %d pass, want %d", got, len(list), want)
	}
}

func times(n int, q request) (list []request) {
	for range n {
		list = append(list, q)
	}
	return list
}

// Each type of limit has a bucket for each of its keys, in each cluster.
func TestEventRateLimitTypes(t *testing.T) {
	for limit, row := range map[string]struct{ one, same, another request }{
		"Server":          {request{}, request{namespace: "other", user: "bob"}, request{cluster: "west"}},
		"Namespace":       {request{}, request{user: "bob"}, request{namespace: "other"}},
		"User":            {request{}, request{namespace: "other"}, request{user: "bob"}},
		"SourceAndObject": {request{object: event("a", "b", "c")}, request{object: event("a", "b", "c"), user: "bob"}, request{object: event("a", "b", "d")}},
	} {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where no time passes by itself
				p := configured(t, "EventRateLimit", "{limits: [{type: "+limit+", qps: 1, burst: 3}]}")
				p.passes(1, row.one)
				p.passes(2, times(5, row.same)...)
				p.passes(3, times(5, row.another)...)
				elsewhere := row.one
				elsewhere.cluster = "north"
				p.passes(3, times(5, elsewhere)...)
			})
		})
	}
}

// Tokens come back at their rate, up to the burst.
func TestEventRateLimitRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := configured(t, "EventRateLimit", "{apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Server, qps: 2, burst: 4}]}")
		p.passes(4, times(10, request{})...)
		<-time.After(500 * time.Millisecond)
		p.passes(1, times(10, request{})...)
		<-time.After(time.Hour)
		p.passes(4, times(10, request{})...)
	})
}

// All limits that are reached are told, and each takes its token whatever the others say.
func TestEventRateLimitTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := configured(t, "EventRateLimit", "{limits: [{type: Server, qps: 1, burst: 2}, {type: User, qps: 1, burst: 1}]}")
		q := request{resource: "events", kind: "Event"}
		p.validate(q).says(t, "allowed")
		p.validate(q).says(t, "429 Too many requests: limit reached on type User for key ann")
		got := p.validate(q)
		got.says(t, "429 Too many requests: [limit reached on type Server for key , limit reached on type User for key ann]")
		if got.Reason != "TooManyRequests" {
			t.Errorf("the reason is %s", got.Reason)
		}
	})
}

// A dry run costs nothing, and neither does what is no Event.
func TestEventRateLimitIgnores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := configured(t, "EventRateLimit", "{limits: [{type: Server, qps: 1, burst: 1}]}")
		p.passes(5, times(5, request{dryRun: true})...)
		for range 3 {
			p.validate(request{resource: "events", kind: "Pod"}).says(t, "allowed")
			p.validate(request{resource: "events.k8s.io/events", kind: "Event"}).says(t, "allowed")
		}
		p.passes(1, times(3, request{})...)
	})
}

// An Event that cannot be decoded has no source, so there is no answer; what is not there
// has no object.
func TestEventRateLimitWithoutAnEvent(t *testing.T) {
	p := configured(t, "EventRateLimit", "{limits: [{type: SourceAndObject, qps: 1, burst: 1}]}")
	p.validate(request{resource: "events", kind: "Event", object: "{source: 1}"}).says(t, "error: the object cannot be decoded as v1.Event: source is not a v1.EventSource")
	p.validate(request{resource: "events", kind: "Event"}).says(t, "allowed")
}

// Of more keys than are remembered the one that was used last long ago begins anew; other
// clusters keep theirs.
func TestEventRateLimitForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := configured(t, "EventRateLimit", "{limits: [{type: User, qps: 1, burst: 1, cacheSize: 2}]}")
		p.passes(1, times(2, request{cluster: "west", user: "a"})...)
		p.passes(3, request{user: "a"}, request{user: "b"}, request{user: "a"}, request{user: "c"})
		p.passes(0, request{user: "a"}, request{user: "c"})
		p.passes(1, request{user: "b"})
		for i := range 100 {
			p.passes(1, request{user: fmt.Sprint("u", i)})
		}
		p.passes(0, request{cluster: "west", user: "a"})
	})
}

func TestEventRateLimitConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"":             "limits: Invalid value: must not be empty",
		"{limits: []}": "limits: Invalid value: must not be empty",
		"{limits: [{type: Cluster, qps: 1, burst: 1}]}":                      `limits[0].type: Unsupported value: "Cluster": supported values: "Namespace", "Server", "SourceAndObject", "User"`,
		"{limits: [{type: Server, qps: 1, burst: 1}, {type: User, qps: 0}]}": "limits[1].burst: Invalid value: 0: must be positive\nlimits[1].qps: Invalid value: 0: must be positive",
		"{limits: [{type: User, qps: 1, burst: 1, cacheSize: -1}]}":          "limits[0].cacheSize: Invalid value: -1: must not be negative",
		"{limits: [{type: User, qps: 1, burst: 1, cacheSize: 1048577}]}":     "limits[0].cacheSize: Invalid value: 1048577: must be at most 1048576",
		"{limits: [{type: User, qps: 1, burst: 1, cacheSize: 1048576}]}":     "",
		"{limits: [{type: Server, qps: 1, burst: 1, cacheSize: -1}]}":        "",
		"{apiVersion: v1, kind: Pod, limits: [{type: Server, qps: 1, burst: 1}]}": `apiVersion: Unsupported value: "v1": supported values: "eventratelimit.admission.k8s.io/v1alpha1"` + "\n" +
			`kind: Unsupported value: "Pod": supported values: "Configuration"`,
	} {
		if _, got := configure(t, "EventRateLimit", text); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
		}
	}
	if _, got := configure(t, "EventRateLimit", "{limits: [{type: Server, qps: many}]}"); !strings.Contains(got, "limits.qps") {
		t.Error(got)
	}
}

// What is remembered of an Event is not as long as the Event, which may be as long as a
// request.
func TestEventRateLimitForgetsLongKeys(t *testing.T) {
	const events, size = 64, 512 << 10
	p := configured(t, "EventRateLimit", "{limits: [{type: SourceAndObject, qps: 1, burst: 1}]}")
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range events {
		q := request{resource: "events", kind: "Event", object: event("a", "b", fmt.Sprint("c", i, strings.Repeat("x", size)))}
		p.validate(q).says(t, "allowed")
	}
	if grown := heap() - before; grown > events*size/4 {
		t.Errorf("it remembers %d B of %d Events", grown, events)
	}
	runtime.KeepAlive(p)
}
