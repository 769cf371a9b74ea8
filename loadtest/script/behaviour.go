// SPDX-License-Identifier: Apache-2.0

package script

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// Behaviour is how a webhook answers beside its verdict. The zero value answers
// at once and properly.
type Behaviour struct {
	Delay time.Duration // of every answer
	// SlowBy delays a share of the answers on top.
	SlowBy    time.Duration
	SlowShare float64

	Hang   bool   // no answer
	HangOn string // no answer about this resource
	// Capacity bounds the reviews that are worked on at once; others wait, and are
	// worked on even if nobody waits for them any more.
	Capacity chan struct{}

	// Form is what is wrong with the answer.
	Form   Form
	Status int // of Persuasive; 500
	// Statuses are those of Persuasive, each webhook's in turn; nil: Status alone.
	Statuses []int

	// Cluster, if not empty, is the only one to which all this happens, and Above the
	// size in bytes of reviews to which it does not.
	Cluster string
	Above   int
}

// to returns how a review of the cluster, of that size, is answered.
func (b Behaviour) to(cluster string, size int) Behaviour {
	if b.Cluster != "" && b.Cluster != cluster || size <= b.Above && b.Above > 0 {
		return Behaviour{}
	}
	return b
}

// Form is a way of not answering properly.
type Form uint8

// The forms.
const (
	Proper     Form = iota
	OtherUID        // the uid of another review
	NotJSON         // a body that is none
	Cut             // half an answer
	Huge            // an answer without end
	Headers         // 10,000 headers
	Informal        // 1xx responses without end
	Redirect        // 307 to Elsewhere
	Persuasive      // an HTTP error with a body that allows
	RetryLater      // 429 with Retry-After
	Page            // the truth, said to be a page of HTML
	Created         // the truth, with status 201
)

// Elsewhere is the path that Redirect leads to; nothing should arrive there.
const Elsewhere = "/elsewhere"

// send answers a review. It reports whether what it sent is the truth, whole.
func (b *Behaviour) send(w *scripted.Call, a history.Answer) bool {
	f, uid := b.Form, w.UID()
	body := review(uid, a)
	switch f {
	case OtherUID:
		body = review("00000000-0000-0000-0000-000000000000", a)
	case NotJSON:
		body = "no"
	case Cut:
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		body = body[:len(body)/2]
	case Huge:
		_, err := io.WriteString(w, body)
		for blanks := strings.Repeat(" ", 64<<10); err == nil; {
			if _, err = io.WriteString(w, blanks); w.Request.Context().Err() != nil {
				break
			}
		}
		return false
	case Headers:
		for i := range 10_000 {
			w.Header().Set(fmt.Sprintf("X-Header-%d", i), "value")
		}
	case Informal:
		for range 100_000 {
			if w.Request.Context().Err() != nil {
				return false
			}
			w.WriteHeader(http.StatusProcessing)
		}
	case Redirect:
		w.Header().Set("Location", "https://"+w.Request.Host+Elsewhere)
		w.WriteHeader(http.StatusTemporaryRedirect)
	case Persuasive:
		body = review(uid, history.Answer{Allowed: true})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(cmp.Or(b.Status, http.StatusInternalServerError))
	case Page:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	case Created:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
	case RetryLater:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	if f == Proper {
		w.Header().Set("Content-Type", "application/json")
	}
	_, err := io.WriteString(w, body)
	return err == nil && (f == Proper || f == Page || f == Created)
}
