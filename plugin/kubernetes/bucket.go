// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"
)

// bucketKey is the sum of a key: an Event may have keys as long as itself.
type bucketKey [sha256.Size]byte

// bucket has tokens, which come at a steady rate up to some number. A new one is full.
type bucket struct {
	key    bucketKey
	tokens float64
	filled time.Time // when the tokens were counted
}

// buckets are those of one limit and cluster. Of many keys those are remembered that were
// used last.
type buckets struct {
	rate, size float64 // tokens a second; what a bucket holds
	most       int     // buckets

	mu    sync.Mutex
	known map[bucketKey]*list.Element // of order
	order list.List                   // of *bucket, the one that was used last in front
}

func newBuckets(l eventLimit) *buckets {
	b := &buckets{rate: float64(l.QPS), size: float64(l.Burst), most: int(l.CacheSize), known: map[bucketKey]*list.Element{}}
	if b.most == 0 {
		b.most = defaultCacheSize
	}
	return b
}

// take takes a token from the bucket of a key, if it has one.
func (b *buckets) take(of string, now time.Time) bool {
	key := bucketKey(sha256.Sum256([]byte(of)))
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.known[key]
	if at == nil {
		at = b.order.PushFront(&bucket{key, b.size, now})
		b.known[key] = at
		if b.order.Len() > b.most {
			oldest := b.order.Remove(b.order.Back()).(*bucket)
			delete(b.known, oldest.key)
		}
	}
	b.order.MoveToFront(at)
	own := at.Value.(*bucket)
	if since := now.Sub(own.filled); since > 0 {
		own.tokens = min(b.size, own.tokens+since.Seconds()*b.rate)
		own.filled = now
	}
	if own.tokens < 1 {
		return false
	}
	own.tokens--
	return true
}
