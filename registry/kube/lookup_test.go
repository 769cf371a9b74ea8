// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// backend counts and delays what is asked of a cluster.
type backend struct {
	mu               sync.Mutex
	takes            time.Duration
	times, now, most int
}

func (b *backend) get(ctx context.Context, name string) (map[string]string, error) {
	b.mu.Lock()
	takes := b.takes
	b.times++
	b.now++
	b.most = max(b.most, b.now)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.now--
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(takes):
	}
	if name == "mars" {
		return nil, told{match.ErrNoNamespace}
	}
	return map[string]string{"is": name}, nil
}

func TestLookupsTakeBoundedTime(t *testing.T) {
	for _, tt := range []struct {
		name       string
		takes      time.Duration
		left       time.Duration // until the deadline; 0: none
		want       error
		wantWaited time.Duration
	}{
		{"in time", 100 * time.Millisecond, time.Second, nil, 100 * time.Millisecond},
		{"no deadline", 499 * time.Millisecond, 0, nil, 499 * time.Millisecond},
		{"too slow", time.Hour, 0, errNoAnswer, 500 * time.Millisecond},
		{"too slow, long deadline", time.Hour, 30 * time.Second, errNoAnswer, 500 * time.Millisecond},
		{"too slow, short deadline", time.Hour, 300 * time.Millisecond, errNoAnswer, 150 * time.Millisecond},
		{"deadline over", 0, -time.Second, errNoTime, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := backend{takes: tt.takes}
				start := time.Now()
				var deadline time.Time
				if tt.left != 0 {
					deadline = start.Add(tt.left)
				}
				_, err := newLookups("namespaces", b.get).ask("shop", deadline)
				if waited := time.Since(start); !errors.Is(err, tt.want) || waited != tt.wantWaited {
					t.Errorf("%v after %v; want %v after %v", err, waited, tt.want, tt.wantWaited)
				}
			})
		})
	}
}

func TestOneGetForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backend{takes: 100 * time.Millisecond}
		l := newLookups("namespaces", b.get)
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if n, err := l.ask("shop", time.Time{}); err != nil || n["is"] != "shop" {
					t.Errorf("%v, %v", n, err)
				}
			})
		}
		asking.Wait()
		if b.times != 1 || l.gets.Load() != 1 {
			t.Errorf("%d GETs, %d counted", b.times, l.gets.Load())
		}
	})
}

// TestFirstAskerOutOfTime asks again for those who have more time.
func TestFirstAskerOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backend{takes: 200 * time.Millisecond}
		l := newLookups("namespaces", b.get)
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := l.ask("shop", time.Now().Add(100*time.Millisecond)); !errors.Is(err, errNoAnswer) {
				t.Errorf("without time: %v", err)
			}
		})
		synctest.Wait()
		if _, err := l.ask("shop", time.Time{}); err != nil {
			t.Errorf("with time: %v", err)
		}
		asking.Wait()
	})
}

func TestAnswersCountForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backend
		l := newLookups("namespaces", b.get)
		ask := func(name string, want error, times int) {
			t.Helper()
			if _, err := l.ask(name, time.Time{}); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
			if b.times != times {
				t.Errorf("%s: %d GETs, want %d", name, b.times, times)
			}
		}
		ask("shop", nil, 1)
		ask("shop", nil, 1)
		<-time.After(foundFor + 1)
		ask("shop", nil, 2)
		ask("mars", match.ErrNoNamespace, 3)
		ask("mars", match.ErrNoNamespace, 4) // it may be there the next moment
	})
}

// TestNamesThatNoneCanHave never become part of a path.
func TestNamesThatNoneCanHave(t *testing.T) {
	var b backend
	s := newSource(New(Config{}), 1, "east", manifest.KubeAccess{}, nil)
	s.live = newLookups("namespaces", b.get)
	for _, name := range []string{"", ".", "..", "../secrets", "a/b", "a?b", "A", "a%2fb"} {
		if _, err := s.LookUpNamespace(name, time.Time{}); !errors.Is(err, match.ErrNoNamespace) || b.times != 0 {
			t.Errorf("%q: %v, %d GETs", name, err, b.times)
		}
	}
}

func TestGetsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backend{takes: 100 * time.Millisecond}
		l := newLookups("namespaces", b.get)
		var asking sync.WaitGroup
		for i := range 3 * maxGets {
			asking.Go(func() {
				if _, err := l.ask(fmt.Sprint(i), time.Time{}); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if b.most != maxGets {
			t.Errorf("%d GETs at once", b.most)
		}
	})
}

func TestAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backend
		l := newLookups("namespaces", b.get)
		for i := range maxFound + 10 {
			_, _ = l.ask(fmt.Sprint(i), time.Time{})
		}
		if len(l.found) != maxFound {
			t.Errorf("%d answers are kept", len(l.found))
		}
		<-time.After(foundFor + 1)
		_, _ = l.ask("shop", time.Time{})
		if len(l.found) != 1 {
			t.Errorf("%d answers are kept after their time", len(l.found))
		}
	})
}
