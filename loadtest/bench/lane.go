// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// lane is the way from one cluster to one target, with connections that last as
// long as the lab.
type lane struct {
	*target
	client *fasthttp.HostClient
	url    string
}

// lane returns the way to a target for a cluster.
func (l *lab) lane(s *stage, t *target, cluster string) (*lane, error) {
	certificate, err := tls.LoadX509KeyPair(l.path(cluster+".crt"), l.path(cluster+".key"))
	if err != nil {
		return nil, err
	}
	client := &fasthttp.HostClient{
		Addr: t.address, IsTLS: true, MaxConns: 1 << 16, MaxIdleConnDuration: time.Hour,
		ReadBufferSize: 16 << 10, WriteBufferSize: 32 << 10, MaxIdemponentCallAttempts: 1,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: s.authority.Pool(), Certificates: []tls.Certificate{certificate},
			ServerName: "127.0.0.1", DynamicRecordSizingDisabled: true,
		},
	}
	l.atEnd(client.CloseIdleConnections)
	return &lane{target: t, client: client, url: "https://" + t.address + fmt.Sprintf(t.path, cluster)}, nil
}

// call is one admission after the other, by one caller.
type call struct {
	*lane
	review   payload.Review
	number   uint64
	request  *fasthttp.Request
	response *fasthttp.Response
}

func (w *lane) call(review *payload.Review, n int) *call {
	c := &call{lane: w, review: review.Clone(), number: uint64(n) << 20, request: fasthttp.AcquireRequest(), response: fasthttp.AcquireResponse()}
	c.request.SetRequestURI(w.url)
	c.request.Header.SetMethod(fasthttp.MethodPost)
	c.request.Header.SetContentType("application/json")
	c.request.Header.SetUserAgent("kube-apiserver-admission")
	c.request.Header.Set("Traceparent", unsampled)
	c.request.SetBodyRaw(c.review.Body)
	return c
}

var allowed = []byte(`"allowed":true`)

// admit asks for one admission. It must be allowed.
func (c *call) admit() error {
	c.number++
	c.review.Number(c.number)
	if err := c.client.Do(c.request, c.response); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if c.response.StatusCode() != fasthttp.StatusOK || !bytes.Contains(c.response.Body(), allowed) {
		return fmt.Errorf("%s: HTTP status %d: %.300s", c.name, c.response.StatusCode(), c.response.Body())
	}
	return nil
}

// tally is what came of a flood.
type tally struct {
	allowed int
	failed  int
	failure error // one of them
	took    time.Duration
}

// flood has so many callers ask for one admission after the other.
func (w *lane) flood(review *payload.Review, callers int, span time.Duration) tally {
	began := time.Now()
	tallies := together(callers, func(n int) (t tally) {
		for c := w.call(review, n); time.Since(began) < span; {
			if err := c.admit(); err != nil {
				t.failed++
				t.failure = err
				continue
			}
			t.allowed++
		}
		return t
	})
	sum := tally{took: time.Since(began)}
	for _, t := range tallies {
		sum.allowed += t.allowed
		sum.failed += t.failed
		sum.failure = cmp.Or(sum.failure, t.failure)
	}
	return sum
}

// patience bounds the time that it takes until nothing fails any more.
const patience = 30 * time.Second

// warmUp floods until nothing fails: connections are opened, and pools filled. A
// breaker that opened while all shook hands at once has closed again.
func (w *lane) warmUp(review *payload.Review, callers int, span time.Duration) error {
	for began := time.Now(); ; {
		t := w.flood(review, callers, span)
		if t.failed == 0 {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%d of %d fail, such as %w", t.failed, t.failed+t.allowed, t.failure)
		}
	}
}

// pacers are the callers of pace: so many that a slow answer holds up few others.
const pacers = 64

// pace asks for admissions at random times, rate of them a second on average, and
// returns how long each took from when it was sent, sorted. The times are drawn
// beforehand: an answer that is late moves none of them, and what its caller would
// have sent meanwhile is sent at once.
func (w *lane) pace(review *payload.Review, rate float64, span time.Duration) ([]time.Duration, error) {
	var failure atomic.Pointer[error]
	lists := together(pacers, func(n int) (took []time.Duration) {
		draw := rand.New(rand.NewPCG(9, uint64(n)))
		c := w.call(review, n)
		due := time.Now()
		for end := due.Add(span); ; {
			due = due.Add(time.Duration(draw.ExpFloat64() * pacers / rate * float64(time.Second)))
			if due.After(end) {
				return took
			}
			time.Sleep(time.Until(due))
			sent := time.Now()
			if err := c.admit(); err != nil {
				failure.Store(&err)
				return took
			}
			took = append(took, time.Since(sent))
		}
	})
	all := slices.Sorted(slices.Values(slices.Concat(lists...)))
	if err := failure.Load(); err != nil {
		return nil, *err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no admission within %v", w.name, span)
	}
	return all, nil
}

// steady paces, and returns what a flood does.
func (w *lane) steady(review *payload.Review, rate float64, span time.Duration) (tally, error) {
	began := time.Now()
	took, err := w.pace(review, rate, span)
	return tally{allowed: len(took), took: max(time.Since(began), span)}, err
}

// together runs f for each of n, at once.
func together[T any](n int, f func(int) T) []T {
	values := make([]T, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { values[i] = f(i) })
	}
	wg.Wait()
	return values
}

// quantile of what is sorted and not empty.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
