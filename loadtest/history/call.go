// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// Call is one admission as its caller saw it. Namespace and Intended decide
// nothing here; they are for who reads the record.
type Call struct {
	UID       string // unique in the run
	Cluster   string
	Phase     Phase
	Resource  string
	Namespace string
	DryRun    bool
	Exempt    bool   // a bypass holds for it
	FailOpen  bool   // a failOpen rule holds for it: a CallError never blocks it
	BodyHash  string // of the object as sent

	Intended time.Duration // when an open loop wanted to send it
	Sent     time.Duration
	Done     time.Duration // when the answer, or the error, was there
	Timeout  time.Duration // as in ?timeout=
	// Stall is for how long the caller itself did not run between Sent and Done: on a
	// machine that is shared the answer may have been there for so long.
	Stall time.Duration
	// LastStall is what of Stall was in the last half second: what a deadline suffers.
	LastStall time.Duration

	Err         string // no answer: why
	GaveUp      bool   // no answer: the Timeout was over, and the LastStall
	Status      int    // of HTTP
	UIDAnswered string
	Allowed     bool
	Code        int32
	Message     string
	Warnings    []string
	Patch       []byte            // decoded from base64
	Annotations map[string]string // keys as the dispatcher sent them
}

// Attempt is one HTTP try as the webhook saw it. Endpoint decides nothing here.
type Attempt struct {
	UID      string
	Webhook  string
	Version  string // that it was asked as
	Endpoint string
	Cluster  string // the Admission-Cluster header
	BodyHash string // of the object as received
	Arrived  time.Duration
	Answered time.Duration // when the answer was written; 0: never
	// Intact: what was written is the truth of the script, whole. An answer that
	// was made malformed, cut short or meant for another uid is not.
	Intact bool
}

// Hash is what BodyHash holds: it names the bytes of an object.
func Hash(object []byte) string {
	sum := sha256.Sum256(object)
	return hex.EncodeToString(sum[:8])
}

// attempts are those of one uid, in the order of their arrival.
type attempts []*Attempt

// of returns those that reached the webhook.
func (all attempts) of(webhook string) attempts {
	var some attempts
	for _, a := range all {
		if a.Webhook == webhook {
			some = append(some, a)
		}
	}
	return some
}

// byUID groups the attempts by uid.
func byUID(all []Attempt) map[string]attempts {
	groups := map[string]attempts{}
	for i := range all {
		groups[all[i].UID] = append(groups[all[i].UID], &all[i])
	}
	for _, group := range groups {
		slices.SortStableFunc(group, func(x, y *Attempt) int { return cmp.Compare(x.Arrived, y.Arrived) })
	}
	return groups
}
