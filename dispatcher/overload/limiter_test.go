// SPDX-License-Identifier: Apache-2.0

package overload

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// model is the limiter as simple as can be: it looks at all clusters at each step.
type model struct {
	limits  Limits
	held    []*modelHolder // slots
	loans   []*modelHolder // bytes
	waiting []*modelHolder // in the order in which they came
}

type modelHolder struct {
	cluster string
	size    int64
	tenant  *tenant
	waiter  *waiter
}

func (m *model) slots(cluster string) (n int) {
	for _, h := range m.held {
		if cluster == "" || h.cluster == cluster {
			n++
		}
	}
	return n
}

func (m *model) bytes(cluster string) (n int64) {
	for _, h := range m.loans {
		if cluster == "" || h.cluster == cluster {
			n += h.size
		}
	}
	return n
}

// may reports whether h could be served: there is a slot, its cluster has not all of
// its own, and there are the bytes.
func (m *model) may(h *modelHolder) bool {
	return m.slots("") < m.limits.Admissions && m.slots(h.cluster) < m.limits.PerCluster && m.fits(h)
}

// fits reports whether there are the bytes for h: what its cluster then has is no
// more than what is left, or half of that if h is large.
func (m *model) fits(h *modelHolder) bool {
	own, left := m.bytes(h.cluster), m.limits.Bytes-m.bytes("")-h.size
	if h.size > 256<<10 {
		left /= 2
	}
	return left >= 0 && (own == 0 || own+h.size <= left) || own == 0 && m.bytes("")+h.size <= m.limits.Bytes
}

// mayHold reports whether h gets its bytes without a slot; with more they are for the
// cluster's admission, which gets what is free if it is the only one.
func (m *model) mayHold(h *modelHolder, more bool) bool {
	return m.fits(h) || more && m.slots(h.cluster) == 1 && m.bytes("")+h.size <= m.limits.Bytes
}

// first returns who waits longest, of each cluster.
func (m *model) first() (heads []*modelHolder) {
	for _, h := range m.waiting {
		if !slices.ContainsFunc(heads, func(x *modelHolder) bool { return x.cluster == h.cluster }) {
			heads = append(heads, h)
		}
	}
	return heads
}

// explains reports whether there is an order in which the model would have served
// all of them, and does so.
func (m *model) explains(served []*modelHolder) bool {
	if len(served) == 0 {
		return true
	}
	for i, h := range served {
		if !slices.Contains(m.first(), h) || !m.may(h) || m.limits.Bytes == plenty && m.unfair(h) {
			continue
		}
		before := *m
		m.waiting = slices.DeleteFunc(slices.Clone(m.waiting), func(x *modelHolder) bool { return x == h })
		m.held, m.loans = append(slices.Clone(m.held), h), append(slices.Clone(m.loans), h)
		if m.explains(slices.Delete(slices.Clone(served), i, i+1)) {
			return true
		}
		*m = before
	}
	return false
}

// unfair reports whether somebody who could be served has fewer slots than h.
func (m *model) unfair(h *modelHolder) bool {
	return slices.ContainsFunc(m.first(), func(x *modelHolder) bool {
		return m.may(x) && m.slots(x.cluster) < m.slots(h.cluster)
	})
}

// plenty is bytes enough for everybody.
const plenty = 1 << 40

// Whatever is asked for and given back in whatever order: never are there more slots
// taken than there are, of all clusters or of one, nor more bytes; nobody waits who
// could be served; who is served has the fewest slots of those that could be, unless
// bytes are short; and when all have gone, nothing is left behind.
func TestLimiterLikeTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]int64{1, 32 << 10}).Draw(t, "unit") // of bytes; of the second more than 8 are a large review
		m := &model{limits: Limits{
			Admissions: rapid.IntRange(1, 8).Draw(t, "admissions"),
			PerCluster: rapid.IntRange(1, 8).Draw(t, "perCluster"),
			Bytes:      rapid.SampledFrom([]int64{1, 20 * unit, 64 * unit, plenty}).Draw(t, "bytes"),
		}}
		draw := func() *modelHolder {
			return &modelHolder{cluster: fmt.Sprintf("c%d", rapid.IntRange(0, 3).Draw(t, "cluster")), size: unit * int64(rapid.IntRange(1, 16).Draw(t, "size"))}
		}
		l := newLimiter(m.limits, queueLength)
		// serve moves those that were served meanwhile, and checks that it was their turn.
		serve := func() {
			var served []*modelHolder
			for _, h := range m.waiting {
				select {
				case <-h.waiter.granted:
					served = append(served, h)
				default:
				}
			}
			if !m.explains(served) {
				t.Fatalf("%+v were served in place of others", served)
			}
			for _, h := range m.first() {
				if m.may(h) {
					t.Fatalf("%+v waits and could be served", h)
				}
			}
		}
		take := func(list *[]*modelHolder) *modelHolder {
			i := rapid.IntRange(0, len(*list)-1).Draw(t, "which")
			h := (*list)[i]
			*list = slices.Delete(*list, i, i+1)
			return h
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 5).Draw(t, "step"); {
			case step < 2:
				h := draw()
				may := m.may(h)
				if h.tenant, h.waiter = l.enter(h.cluster, h.size); h.waiter != nil {
					m.waiting = append(m.waiting, h)
				} else if h.tenant != nil {
					m.held, m.loans = append(m.held, h), append(m.loans, h)
				}
				if served := h.waiter == nil && h.tenant != nil; served != may {
					t.Fatalf("served %v, want %v", served, may)
				}
			case step == 2 && len(m.held) > 0:
				take(&m.held).tenant.release()
			case step == 3 && len(m.loans) > 0:
				h := take(&m.loans)
				h.tenant.Freed(int(h.size))
			case step == 4 && len(m.waiting) > 0:
				h := take(&m.waiting)
				if l.leave(h.tenant, h.waiter) {
					t.Fatal("was served")
				}
			case step == 5:
				h, more := draw(), rapid.Bool().Draw(t, "more")
				may := m.mayHold(h, more)
				if h.tenant = l.hold(h.cluster, h.size, more); h.tenant != nil {
					m.loans = append(m.loans, h)
				}
				if got := h.tenant != nil; got != may {
					t.Fatalf("holds %v, want %v", got, may)
				}
			}
			serve()
			inOrder(t, l)
			if m.slots("") != l.active || m.bytes("") != l.bytes || l.bytes > m.limits.Bytes {
				t.Fatalf("%d slots, want %d; %d bytes, want %d", l.active, m.slots(""), l.bytes, m.bytes(""))
			}
		}
		for len(m.waiting) > 0 {
			h := take(&m.waiting)
			l.leave(h.tenant, h.waiter)
			serve() // who stood behind it
		}
		for _, h := range m.held {
			h.tenant.release()
		}
		for _, h := range m.loans {
			h.tenant.Freed(int(h.size))
		}
		if l.active != 0 || l.bytes != 0 || len(l.tenants) != 0 || len(l.bySlots.list) != 0 || len(l.byDemand.list) != 0 {
			t.Fatalf("left behind: %+v", l)
		}
	})
}

// inOrder checks that whoever is served next stands first.
func inOrder(t *rapid.T, l *limiter) {
	for _, r := range []*ranking{&l.bySlots, &l.byDemand} {
		for i, each := range r.list {
			if each.rank[r.number] != i || i > 0 && r.Less(i, (i-1)/2) {
				t.Fatalf("%s stands before who is served before it", each.name)
			}
		}
	}
}

// A slot that is given back costs no look at the clusters that wait for none, and few
// at those that do.
func TestLimiterDoesNotWalk(t *testing.T) {
	const clusters = 1000
	l := newLimiter(Limits{Admissions: clusters, PerCluster: clusters}, queueLength)
	compared := 0
	for _, r := range []*ranking{&l.bySlots, &l.byDemand} {
		before := r.before
		r.before = func(a, b *tenant) bool { compared++; return before(a, b) }
	}
	var held []*tenant
	for i := range clusters {
		tenant, _ := l.enter(fmt.Sprint("c", i), 0)
		held = append(held, tenant)
	}
	l.enter("c0", 0) // waits
	compared = 0
	held[500].release()
	if compared > 0 {
		t.Errorf("%d comparisons where one waits", compared)
	}
	for i := range clusters {
		l.enter(fmt.Sprint("c", i), 0)
	}
	compared = 0
	held[600].release()
	if most := 4 * 2 * 10; compared > most { // two heaps of 1,000, both children in each layer
		t.Errorf("%d comparisons where all wait, want at most %d", compared, most)
	}
}

// BenchmarkLimiter takes a slot and gives it back, with so many other clusters that
// have some, and one that waits for all of its own.
func BenchmarkLimiter(b *testing.B) {
	for _, clusters := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			l := newLimiter(Limits{Admissions: 2 * clusters, PerCluster: 1}, queueLength)
			for i := range clusters {
				l.enter(fmt.Sprint("c", i), 0)
			}
			l.enter("c0", 0) // waits
			for b.Loop() {
				t, _ := l.enter("own", 0)
				t.release()
			}
		})
	}
}

// Clusters that take all the bytes that they can get have equal shares once each
// review that they had has gone, and leave one for another cluster.
func TestBytesAreShared(t *testing.T) {
	const mib, clusters, largest = 1 << 20, 9, 36 << 20
	l := newLimiter(Limits{}, 0)
	var held [clusters][]*tenant
	take := func(i int) bool {
		tenant, _ := l.enter(fmt.Sprint("c", i), mib)
		if tenant != nil {
			held[i] = append(held[i], tenant)
		}
		return tenant != nil
	}
	for take(0) {
	}
	if n := len(held[0]); n < 160 || n > 180 {
		t.Errorf("one cluster alone gets %d MiB, want a third of 512", n)
	}
	if other, _ := l.enter("other", largest); other == nil {
		t.Error("beside one cluster that takes all it can, the largest review is shed")
	} else {
		other.release()
		other.Freed(largest)
	}
	for range 2 * len(held[0]) {
		for i := range held {
			if len(held[i]) > 0 {
				held[i][0].release()
				held[i][0].Freed(mib)
				held[i] = held[i][1:]
			}
			for take(i) {
			}
		}
	}
	for i := range held {
		if n := len(held[i]); n < 40 || n > 50 {
			t.Errorf("cluster %d has %d MiB, want the eleventh part of 512", i, n)
		}
	}
	if other, _ := l.enter("other", largest); other == nil {
		t.Error("beside nine clusters that take all they can, the largest review is shed")
	}
	if other, _ := l.enter("another", 512*mib+1); other != nil {
		t.Error("a review that is larger than everything is not shed")
	}
}

// Where there is one slot, the clusters take turns, however many one has in the queue.
func TestTurns(t *testing.T) {
	l := newLimiter(Limits{Admissions: 1, PerCluster: 1, Bytes: 1}, 100)
	now, _ := l.enter("a", 0)
	type entry struct {
		tenant *tenant
		waiter *waiter
	}
	var queue []entry
	for _, c := range []string{"a", "a", "a", "a", "b", "b", "c"} {
		tenant, w := l.enter(c, 0)
		queue = append(queue, entry{tenant, w})
	}
	var order string
	for len(queue) > 0 {
		now.release()
		for i, e := range queue {
			select {
			case <-e.waiter.granted:
				order += e.tenant.name
				now, queue = e.tenant, slices.Delete(queue, i, i+1)
			default:
				continue
			}
			break
		}
	}
	if order != "abcabaa" {
		t.Errorf("served in the order %s", order)
	}
}

// F27: one cluster that asks for twenty times its share gets what is over, and
// the others get all that they ask for.
func TestOneClusterStormIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limits{Admissions: 20, PerCluster: 10}, queueLength)
		var wg sync.WaitGroup
		var mu sync.Mutex
		shed := map[string]int{}
		ask := func(cluster string) {
			wg.Go(func() {
				slot := l.acquire(cluster, 0, func() time.Duration { return queueWait })
				if slot == nil {
					mu.Lock()
					shed[cluster]++
					mu.Unlock()
					return
				}
				<-time.After(100 * time.Millisecond)
				slot.release()
			})
		}
		for range 100 {
			for range 20 {
				ask("storm")
			}
			ask("calm")
			<-time.After(20 * time.Millisecond)
		}
		wg.Wait()
		if shed["calm"] != 0 || shed["storm"] < 1000 {
			t.Errorf("shed: %v", shed)
		}
	})
}

// A slot that becomes free goes to the waiting cluster that has the fewest.
func TestFreeSlotsAreShared(t *testing.T) {
	l := newLimiter(Limits{Admissions: 4, PerCluster: 4}, queueLength)
	held := map[string]*tenant{}
	for _, c := range []string{"a", "a", "a", "b"} {
		held[c], _ = l.enter(c, 1)
	}
	_, first := l.enter("a", 1)
	_, second := l.enter("b", 1)
	held["a"].release()
	select {
	case <-second.granted:
	default:
		t.Error("b waits though it has fewer slots")
	}
	select {
	case <-first.granted:
		t.Error("a was served first")
	default:
	}
}

// Where bytes are short, whoever needs the fewest is served next, of equals whoever has
// waited longest.
func TestBytesGoToWhoNeedsTheFewest(t *testing.T) {
	l := newLimiter(Limits{Admissions: 9, PerCluster: 9, Bytes: 100}, queueLength)
	holder, _ := l.enter("holder", 100)
	waiters := map[string]*waiter{}
	for _, c := range []string{"large", "first", "second", "third"} {
		size := int64(10)
		if c == "large" {
			size = 100
		}
		_, waiters[c] = l.enter(c, size)
	}
	holder.release()
	for n, want := range []string{"first", "second", "third"} {
		holder.Freed(10)
		for c, w := range waiters {
			select {
			case <-w.granted:
				if c != want {
					t.Errorf("%s is served at place %d, want %s", c, n, want)
				}
				delete(waiters, c)
			default:
			}
		}
		if len(waiters) != 3-n {
			t.Errorf("%d wait at place %d", len(waiters), n)
		}
	}
}

// A review that is larger than everything waits for nothing; one as large as everything
// waits, and a cluster's only admission may have all that is free.
func TestLargestReview(t *testing.T) {
	l := newLimiter(Limits{Bytes: 100}, queueLength)
	slot, _ := l.enter("a", 1)
	if tenant, w := l.enter("b", 101); tenant != nil || w != nil {
		t.Error("it waits for what will never be")
	}
	if _, w := l.enter("b", 100); w == nil {
		t.Error("it does not wait for everything")
	}
	if l.hold("a", 100, true) != nil || l.hold("a", 99, true) == nil {
		t.Error("the only admission gets more or less than all that is free")
	}
	slot.release()
}

// Of one cluster that holds what it can, large reviews have to go before small ones.
func TestLargeReviewsGoFirst(t *testing.T) {
	l := newLimiter(Limits{Bytes: 9 << 20}, queueLength)
	enter := func(size int64) bool { _, w := l.enter("a", size); return w == nil }
	for range 3 {
		if !enter(1 << 20) {
			t.Error("up to a third large reviews pass")
		}
	}
	if enter(1<<20) || !enter(10<<10) {
		t.Error("above it small ones pass only")
	}
}
