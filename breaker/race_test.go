// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Many callers at once, on a breaker that goes through all of its states; then
// it recovers.
func TestManyCallersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		var callers sync.WaitGroup
		for caller := range 32 {
			callers.Go(func() { call(b, caller) })
		}
		callers.Wait()
		deadline := time.Now().Add(5 * time.Minute)
		for b.State() != breaker.Closed || len(b.Status().Circuits) > 0 {
			if time.Now().After(deadline) {
				t.Fatalf("still %+v", b.Status())
			}
			for _, resource := range []string{pods, secrets, deploys} {
				for _, cluster := range []string{east, west, north} {
					if ticket, ok := b.Allow(cluster, resource); ok {
						ticket.Done(breaker.Success)
					}
				}
			}
			advance(10 * time.Millisecond)
		}
	})
}

// call makes attempts, every third of which ends after some time.
func call(b *breaker.Breaker, caller int) {
	results := []breaker.Result{breaker.Success, breaker.Failure, breaker.ConnectFailure, breaker.Excluded}
	resources := []string{pods, secrets, deploys}
	clusters := []string{east, west, north}
	for i := range 300 {
		cluster := clusters[caller%len(clusters)]
		ticket, ok := b.Allow(cluster, resources[i%len(resources)])
		if !ok {
			ticket, ok = b.AllowForced(cluster, pods)
		}
		if ok && i%2 == 0 {
			ticket.Reached()
		}
		if i%3 == 0 {
			advance(time.Duration(caller) * 20 * time.Millisecond)
		}
		if ok {
			ticket.Done(results[(i/7+caller/8)%len(results)])
		}
		b.Status()
	}
}

func BenchmarkClosed(b *testing.B) {
	br := breaker.New(breaker.Settings{})
	b.ReportAllocs()
	for b.Loop() {
		if ticket, ok := br.Allow(east, pods); ok {
			ticket.Done(breaker.Success)
		}
	}
}

func BenchmarkClosedParallel(b *testing.B) {
	br := breaker.New(breaker.Settings{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if ticket, ok := br.Allow(east, pods); ok {
				ticket.Done(breaker.Success)
			}
		}
	})
}

// BenchmarkGobreaker is what the library alone costs.
func BenchmarkGobreaker(b *testing.B) {
	br := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{Interval: 10 * time.Second, BucketPeriod: time.Second})
	b.ReportAllocs()
	for b.Loop() {
		if done, err := br.Allow(); err == nil {
			done(nil)
		}
	}
}
