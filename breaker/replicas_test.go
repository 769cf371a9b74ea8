// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// attemptsAt returns how many attempts replicas make in a time at an Endpoint that fails,
// for so many clusters that call all the time. Only what comes after the first minute
// counts: until then circuits open.
func attemptsAt(replicas, clusters int, r breaker.Result, told bool) (attempts int) {
	random := rand.New(rand.NewPCG(1, 2))
	s := breaker.Settings{Rand: random.Float64}
	if told {
		s.Replicas = func() int { return replicas }
	}
	var all []*breaker.Breaker
	for range replicas {
		all = append(all, breaker.New(s))
	}
	const opening, window = time.Minute, 10 * time.Minute
	begin := time.Now()
	for ; time.Since(begin) < opening+window; <-time.After(50 * time.Millisecond) {
		for _, b := range all {
			for c := range clusters {
				name := fmt.Sprint("cluster-", c)
				ticket, ok := b.Allow(name, "pods")
				if !ok {
					ticket, ok = b.AllowForced(name, "pods")
				}
				if !ok {
					continue
				}
				ticket.Done(r)
				if time.Since(begin) > opening {
					attempts++
				}
			}
		}
	}
	return attempts
}

// Ten replicas, or a hundred, together make no more attempts at a webhook that is down
// than one alone, be they probes or forced. If they do not know of each other they make
// that many times as many.
func TestReplicasShareProbes(t *testing.T) {
	for _, result := range []breaker.Result{breaker.Failure, breaker.ConnectFailure} {
		for _, replicas := range []int{10, 100} {
			t.Run(fmt.Sprintf("%d replicas, result %d", replicas, result), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const clusters = 2
					alone := attemptsAt(1, clusters, result, false)
					together := attemptsAt(replicas, clusters, result, true)
					t.Logf("one alone: %d attempts, %d together: %d", alone, replicas, together)
					if together > alone*12/10 {
						t.Errorf("%d attempts of %d replicas, one alone makes %d", together, replicas, alone)
					}
					if together < alone/2 {
						t.Errorf("%d attempts of %d replicas, one alone makes %d: a webhook that is well again is found late", together, replicas, alone)
					}
				})
			})
		}
	}
	t.Run("strangers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if alone, together := attemptsAt(1, 2, breaker.Failure, false), attemptsAt(10, 2, breaker.Failure, false); together < 9*alone {
				t.Errorf("%d attempts of 10 that know nothing of each other, one alone makes %d", together, alone)
			}
		})
	})
}

// One of a thousand makes a forced attempt of a cluster in 100 s on average, although what
// is known of a cluster is forgotten much sooner where nothing is to be remembered.
func TestForcedAttemptsOfAThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		b := breaker.New(breaker.Settings{Replicas: func() int { return 1000 }, Rand: random.Float64})
		attempts := 0
		for begin := time.Now(); time.Since(begin) < 2000*time.Second; <-time.After(time.Second) {
			ticket, ok := b.Allow("a", "pods")
			if !ok {
				ticket, ok = b.AllowForced("a", "pods")
			}
			if ok {
				attempts++
				ticket.Done(breaker.ConnectFailure)
			}
		}
		if attempts > 50 || attempts < 10 {
			t.Errorf("%d attempts in 2000 s", attempts)
		}
	})
}

// However many replicas there are, an Endpoint that is well again is tried in the end.
func TestOpenTimeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := breaker.Settings{Replicas: func() int { return 1000 }, Rand: func() float64 { return 0.999 }, ForcedInterval: time.Hour}
		b := breaker.New(s)
		for range 3 {
			ticket, ok := b.Allow("a", "pods")
			if !ok {
				t.Fatal("it is open already")
			}
			ticket.Done(breaker.ConnectFailure)
		}
		begin := time.Now()
		for ok := false; !ok; <-time.After(time.Second) {
			_, ok = b.Allow("a", "pods")
			if time.Since(begin) > 21*time.Minute {
				t.Fatal("it is not tried")
			}
		}
	})
}
