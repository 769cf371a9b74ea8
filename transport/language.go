// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// How long a Target that does not read what it said it reads is sent the plain form,
// doubled each time until it reads it again.
const (
	plainTime    = time.Minute
	maxPlainTime = time.Hour
)

// clearTime is how long a form is not blamed for anything once the plain one has
// failed too: a webhook that is simply broken must not be asked everything twice.
const clearTime = 10 * time.Second

// language is what a Target has said that it reads. It is safe for concurrent use.
type language struct {
	reads      atomic.Uint32 // a reading
	plainUntil atomic.Int64  // in Unix nanoseconds; until then nothing more is believed
	clearUntil atomic.Int64  // in Unix nanoseconds; until then no ending is a misreading
	doubted    atomic.Bool   // wait is not 0

	mu   sync.Mutex // held by whoever changes anything
	wait time.Duration
}

// now returns what the Target may be sent as of now.
func (l *language) now(now time.Time) reading {
	reads := reading(l.reads.Load())
	if reads != 0 && now.UnixNano() < l.plainUntil.Load() {
		return 0
	}
	return reads
}

// learn notes what an answer says that the webhook reads, and reports whether that
// is something else than before; lost, that it is less. A verdict that says nothing
// takes back what was said: it is from another version of the webhook. One in
// protobuf does not, whose webhook reads it, nor what is no verdict, which may be a
// proxy's.
//
// What was taken back is not believed again for a while, so that replicas that say
// different things do not have the form change with every answer.
func (l *language) learn(answer *fasthttp.Response, verdict bool, now time.Time) (changed, lost bool) {
	said, ok := readingOf(answer)
	was := reading(l.reads.Load())
	if said == was || !ok && (!verdict || isProtobuf(answer.Header.ContentType())) {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was = reading(l.reads.Load())
	if now.UnixNano() < l.plainUntil.Load() {
		said &= was
	}
	l.reads.Store(uint32(said))
	if lost = was&^said != 0; lost {
		l.setAside(now)
	}
	return said != was, lost
}

// refuse has the plain form sent for a while, because what was said does not hold. It
// reports false if that was so already.
func (l *language) refuse(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setAside(now)
}

func (l *language) setAside(now time.Time) bool {
	if now.UnixNano() < l.plainUntil.Load() {
		return false
	}
	l.wait = min(max(plainTime, 2*l.wait), maxPlainTime)
	l.plainUntil.Store(now.Add(l.wait).UnixNano())
	l.doubted.Store(true)
	return true
}

// clear notes that what went wrong in a form that was learned goes wrong in plain form
// too.
func (l *language) clear(now time.Time) { l.clearUntil.Store(now.Add(clearTime).UnixNano()) }

// isClear reports whether that was so a moment ago.
func (l *language) isClear(now time.Time) bool { return now.UnixNano() < l.clearUntil.Load() }

// confirm notes that the webhook has read what it said it reads.
func (l *language) confirm() {
	if !l.doubted.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait = 0
	l.doubted.Store(false)
}

// Reads says what the Target is sent where nothing is pinned, in words: the best
// encoding and the codings that its answers offer, such as "Protobuf, zstd", and
// until when it is sent plain JSON all the same.
func (t *Target) Reads(now time.Time) string {
	l := &t.language
	text := reading(l.reads.Load()).String()
	if until := l.plainUntil.Load(); l.reads.Load() != 0 && now.UnixNano() < until {
		text = codec.JSON.String() + " until " + time.Unix(0, until).UTC().Format(time.RFC3339) + ", then " + text
	}
	return text
}
