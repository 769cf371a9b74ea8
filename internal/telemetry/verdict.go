// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/admission-dispatcher/dispatcher/dispatcher"

// verdict is what an admission came to, in one word. The set is closed.
type verdict uint8

const (
	allowed verdict = iota
	failedOpen
	bypassed
	denied
	refused
	failed
	decisions
)

func (v verdict) String() string { return decision().Values[v] }

// verdictOf finds the word. Of several denials the first kind counts, in the order
// in which they are answered.
func verdictOf(v *dispatcher.Verdict) verdict {
	if v.Bypass != "" {
		return bypassed
	}
	word := allowed
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		switch {
		case !v.Response.Allowed && o.Denies():
			word = worse(word, o.Result)
		case v.Response.Allowed && o.Result == dispatcher.FailedOpen:
			word = failedOpen
		}
	}
	return word
}

func worse(word verdict, r dispatcher.Result) verdict {
	this := failed
	switch r {
	case dispatcher.Denied:
		this = denied
	case dispatcher.Refused:
		this = refused
	}
	if word == allowed || this < word {
		return this
	}
	return word
}
