// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// one makes an attempt of a cluster that ends at once, and reports whether it was
// allowed.
func one(b *breaker.Breaker, cluster, resource string, r breaker.Result) bool {
	ticket, ok := b.Allow(cluster, resource)
	if ok {
		ticket.Done(r)
	}
	return ok
}

// What one cluster's reviews bring about is refused to that cluster alone, also to
// one that is never heard of otherwise, beside traffic that is well, and over
// resources that nobody else knows.
func TestOneClusterFailsAlone(t *testing.T) {
	kinds := []breaker.Kind{breaker.ServerError, breaker.ClientError, breaker.BadAnswer, breaker.TimedOut, breaker.Reset}
	for _, perSecond := range []int{10, 30, 100} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.New(breaker.Settings{})
				start, n := time.Now(), 0
				for time.Since(start) < time.Minute {
					advance(time.Second / time.Duration(perSecond))
					n++
					if ticket, ok := b.AllowForced(east, fmt.Sprint("resource", n%100)); ok {
						ticket.Done(breaker.Of(kinds[n%len(kinds)]))
					}
					one(b, east, pods, breaker.Failure)
					if n%perSecond == 0 && !one(b, west, pods, breaker.Success) {
						t.Fatal("west is refused for what east does")
					}
				}
				if !one(b, north, pods, breaker.Success) {
					t.Fatal("north is refused for what east does")
				}
				if len(b.Status().Circuits) == 0 {
					t.Error("nothing is refused to east")
				}
			})
		})
	}
}

// A stray failure of another cluster is not a second witness.
func TestAStrayFailureIsNoWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		for range 300 {
			advance(100 * time.Millisecond)
			one(b, east, pods, breaker.Failure)
		}
		if one(b, west, pods, breaker.Failure); !one(b, west, pods, breaker.Success) {
			t.Error("west is refused after one failure")
		}
		if one(b, north, pods, breaker.Failure); !one(b, north, pods, breaker.Success) {
			t.Error("north is refused after one failure")
		}
	})
}

// Where two clusters have found out, and nobody has been answered for 10 s, the first
// failure of a third is enough; not so where anybody is answered whose circuits are all
// closed. A failure is no answer.
func TestSeveralClustersSeeIt(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile func(b *breaker.Breaker)
		silence   time.Duration // since south was answered
		refused   bool
	}{
		"nobody is answered": {nil, 10 * time.Second, true},
		"somebody is":        {func(b *breaker.Breaker) { one(b, "south", pods, breaker.Success) }, 10 * time.Second, false},
		"somebody is, who has failed": {func(b *breaker.Breaker) {
			one(b, "south", pods, breaker.Failure)
			one(b, "south", pods, breaker.Success)
		}, 10 * time.Second, false},
		"not for long":                     {nil, 10*time.Second - 1, false},
		"somebody fails":                   {func(b *breaker.Breaker) { one(b, "down", pods, breaker.Failure) }, 10 * time.Second, true},
		"it is not known":                  {func(b *breaker.Breaker) { one(b, "south", pods, breaker.Excluded) }, 10 * time.Second, true},
		"one of the two is, of what works": {func(b *breaker.Breaker) { one(b, east, secrets, breaker.Success) }, 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.New(breaker.Settings{Rand: middle, OpenTime: time.Minute})
				one(b, "south", pods, breaker.Success)
				for range 10 {
					one(b, east, pods, breaker.Failure)
					one(b, west, deploys, breaker.Failure)
				}
				for range 4 {
					if advance(row.silence / 4); row.meanwhile != nil {
						row.meanwhile(b)
					}
				}
				advance(row.silence % 4)
				if !one(b, north, pods, breaker.Failure) {
					t.Fatal("north is refused before it has failed itself")
				}
				if ok := one(b, north, pods, breaker.Failure); ok == row.refused {
					t.Errorf("after one failure north is allowed: %v", ok)
				}
				if !one(b, "south", pods, breaker.Success) {
					t.Error("south is refused, which has never failed")
				}
			})
		})
	}
}

// Clusters that have failed once or twice are no witnesses.
func TestStrayFailuresAreNoWitnesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		for _, cluster := range []string{east, west, "south", north, north} {
			if !one(b, cluster, pods, breaker.Failure) {
				t.Fatalf("%s is refused after one failure", cluster)
			}
		}
	})
}

// An Endpoint that was unreachable is found by whoever connects first: a review
// that hangs or fails is neither waited for nor held against it.
func TestRecoveryIsNotHeldUpByOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{RampWidth: 4})
		advance(5 * time.Second)
		for n := range 4 {
			ticket := allow(t, b, pods) // east's
			if n < 2 {
				refuse(t, b, pods)
			}
			if ticket.Reached(); n == 0 {
				wantState(t, b, breaker.Ramping)
			}
			if n == 1 {
				ticket.Done(breaker.Failure)
			}
		}
		wantState(t, b, breaker.Closed)
		if !one(b, west, pods, breaker.Success) {
			t.Error("west is refused")
		}
	})
}

// While the Endpoint is open, each cluster has forced attempts of its own.
func TestForcedAttemptsOfEachCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{OpenTime: time.Minute})
		if _, ok := b.AllowForced(east, pods); !ok { // and hangs
			t.Fatal("east is refused")
		}
		for range 20 {
			ticket, ok := b.AllowForced(west, pods)
			if !ok {
				t.Fatal("west is refused for what east does")
			}
			ticket.Done(breaker.ConnectFailure)
			advance(100 * time.Millisecond)
		}
	})
}

// What is remembered of clusters is forgotten, whatever they did.
func TestClustersAreForgotten(t *testing.T) {
	for name, after := range map[string]time.Duration{"well again": 11 * time.Second, "gone": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.New(breaker.Settings{Rand: middle})
				for i := range 1000 {
					cluster := fmt.Sprint("cluster", i)
					one(b, cluster, pods, breaker.Failure)
					for range 10 {
						if name == "gone" {
							one(b, cluster, pods, breaker.Failure)
						}
					}
				}
				if n := b.Remembered(); n != 1000 {
					t.Fatalf("%d clusters are remembered", n)
				}
				for range 22 {
					advance(after / 11)
					if name != "gone" {
						one(b, "cluster0", pods, breaker.Success) // although it goes on
					}
					b.State()
				}
				if n := b.Remembered(); n != 0 {
					t.Errorf("%d clusters are remembered", n)
				}
			})
		})
	}
}
