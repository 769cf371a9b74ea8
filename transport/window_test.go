// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// In any 10 s, extra attempts are at most 5 % of the first ones, and 10.
func TestBudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := budget{burst: new(burst)}
		now := time.Unix(1_000_000, 0)
		var firsts, extras []time.Time
		within := func(list []time.Time) float64 {
			n := 0
			for _, at := range list {
				if now.Sub(at) <= 10*time.Second {
					n++
				}
			}
			return float64(n)
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 9).Draw(t, "kind") > 0 {
				b.first(now)
				firsts = append(firsts, now)
			} else if b.take(now) {
				extras = append(extras, now)
				if all := 0.05*within(firsts) + 10; within(extras) > all {
					t.Fatalf("%v extra attempts within 10 s, %v first ones", within(extras), within(firsts))
				}
			}

		}
	})
}

func TestBudgetComesBack(t *testing.T) {
	b := budget{burst: new(burst)}
	now := time.Unix(1_000_000, 0)
	spend := func() (n int) {
		for b.take(now) {
			n++
		}
		return n
	}
	if n := spend(); n != 5 { // half of the 10 that all share
		t.Errorf("%d extra attempts without a first one", n)
	}
	if now = now.Add(11 * time.Second); spend() != 5 {
		t.Error("11 s later there are not as many")
	}
}

// Where many calls want a hedge at a time the webhook is slow, and gets none; a few
// slow answers among many get theirs.
func TestHedgesOfASlowWebhook(t *testing.T) {
	for _, row := range []struct {
		name    string
		every   int // which call wants a hedge
		granted int // at least, of 200 calls
		most    int
	}{
		{"every call", 1, 0, slowLeast},
		{"every third", 3, 0, slowLeast},
		{"every twentieth", 20, 10, 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := budget{burst: new(burst)}
			now, granted := time.Unix(1_000_000, 0), 0
			for i := range 200 {
				now = now.Add(5 * time.Millisecond)
				b.first(now)
				if i%row.every == row.every-1 && b.hedge(now) {
					granted++
				}
			}
			if granted < row.granted || granted > row.most {
				t.Errorf("%d hedges", granted)
			}
		})
	}
}

// Hedges are compared with the calls of this slot of the window and of the one before,
// and limited to a fifth of them, where there are more than ten.
func TestHedgesAreAFifth(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	for _, row := range []struct {
		name   string
		firsts int // one slot before
		want   int
	}{
		{"hardly any calls", 0, slowLeast},
		{"as many as ten are a fifth of", 50, slowLeast},
		{"more", 100, 20},
	} {
		b := budget{burst: new(burst)}
		for range 1000 { // so that the budget has fifty
			b.first(begin)
		}
		now := begin.Add(5 * budgetSlot)
		for range row.firsts {
			b.first(now.Add(-budgetSlot))
		}
		granted := 0
		for range 40 {
			if b.hedge(now) {
				granted++
			}
		}
		if granted != row.want {
			t.Errorf("%s: %d hedges, want %d", row.name, granted, row.want)
		}
	}
}

// A first attempt counts as long as it is surely within the window.
func TestFirstAttemptsLeaveTheWindow(t *testing.T) {
	for slots, want := range map[int]int{9: 50 + 5, 10: 5} {
		b := budget{burst: new(burst)}
		now := time.Unix(1_000_000, 0)
		for range 1000 {
			b.first(now)
		}
		n := 0
		for now = now.Add(time.Duration(slots) * budgetSlot); b.take(now); {
			n++
		}
		if n != want {
			t.Errorf("%d slots later: %d extra attempts, want %d", slots, n, want)
		}
	}
}

// The quantiles are those of the values of the last seconds.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l recent
		now := time.Unix(1_000_000, 0)
		values := rapid.SliceOfN(rapid.IntRange(1, 5_000_000), recentWarm, recentKept).Draw(t, "microseconds")
		for range 50 { // what has left the window does not count
			l.record(now, time.Minute)
		}
		now = now.Add(latencyWindow)
		for _, v := range values {
			l.record(now, time.Duration(v)*time.Microsecond)
		}
		now = now.Add(recentRefresh)
		median, high, ok := l.quantiles(now)
		if !ok {
			t.Fatal("not warm")
		}
		slices.Sort(values)
		near := func(name string, got time.Duration, quantile float64) {
			want := time.Duration(values[int(quantile*float64(len(values)-1)+0.5)]) * time.Microsecond
			next := time.Duration(values[min(int(quantile*float64(len(values)))+1, len(values)-1)]) * time.Microsecond
			before := time.Duration(values[max(int(quantile*float64(len(values)))-1, 0)]) * time.Microsecond
			if got < min(want, before)*9/10-1 || got > max(want, next)*11/10+16*time.Microsecond {
				t.Fatalf("%s is %v, want about %v", name, got, want)
			}
		}
		near("median", median, 0.5)
		near("high", high, 0.95)
	})
}

func TestHedgeDelay(t *testing.T) {
	for _, row := range []struct {
		name   string
		values []time.Duration // each many times
		left   time.Duration
		want   time.Duration
	}{
		{"never below the floor", []time.Duration{100 * time.Microsecond}, time.Second, hedgeFloor},
		{"the quantile", []time.Duration{20 * time.Millisecond}, time.Second, 20 * time.Millisecond},
		{"half of what is left", []time.Duration{200 * time.Millisecond}, 100 * time.Millisecond, 50 * time.Millisecond},
		{"where many are slow, a multiple of the median", []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond, time.Second}, 10 * time.Second, 40 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			var l recent
			now := time.Unix(1_000_000, 0)
			if l.hedgeDelay(now, row.left) != 0 {
				t.Error("a delay from nothing")
			}
			for range recentWarm {
				for _, v := range row.values {
					l.record(now, v)
				}
			}
			got := l.hedgeDelay(now.Add(recentRefresh), row.left)
			if got < row.want*9/10 || got > row.want*11/10+16*time.Microsecond {
				t.Errorf("%v; want about %v", got, row.want)
			}
		})
	}
}
