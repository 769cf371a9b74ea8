// SPDX-License-Identifier: Apache-2.0

// Package script serves webhooks whose answers anybody can compute: a webhook's
// verdict follows from its name and the review's uid, so that whoever checks a
// record needs no record of what was answered. What it does wrong is set while
// it runs.
package script

import (
	"fmt"
	"hash/fnv"
	"net/http"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// denials is how many of 100 admissions a webhook denies.
const denials = 20

// Validating returns the truth of a validating webhook: it denies a fifth of all
// admissions, with a code and a message of its own.
func Validating(webhook string) func(uid string) history.Answer {
	return func(uid string) history.Answer {
		if draw(webhook, uid)%100 >= denials {
			return history.Answer{Allowed: true}
		}
		return history.Answer{Code: http.StatusForbidden, Message: fmt.Sprintf("%s denies %s", webhook, uid)}
	}
}

// Mutating returns the truth of a mutating webhook: it denies as a validating one
// does, and adds an annotation of its own otherwise.
func Mutating(webhook string) func(uid string) history.Answer {
	decide := Validating(webhook)
	return func(uid string) history.Answer {
		a := decide(uid)
		if a.Allowed {
			a.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations/%s","value":"%x"}]`, webhook, draw(webhook, uid))
		}
		return a
	}
}

// Willing returns the truth of a webhook that allows everything.
func Willing(string) history.Answer { return history.Answer{Allowed: true} }

func draw(webhook, uid string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(webhook)) // a hash takes everything
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(uid))
	// FNV's low bits follow the last bytes closely.
	sum := h.Sum64()
	return sum ^ sum>>32
}
