// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// denial compares denials. Where several webhooks deny, the API server shows the
// one that was first to answer, and the dispatcher all of them.
func denial(direct Oracle, through caller.Result, paths int) ([]Difference, error) {
	shown := told(direct.Status, through.Status)
	if Meant(shown) || direct.Phase != caller.Validating {
		return shown, nil
	}
	others, err := direct.Alone()
	if err != nil {
		return nil, err
	}
	var best []Difference
	for _, other := range others {
		if other.Allowed || other.Phase != caller.Validating {
			continue
		}
		if d := told(other.Status, through.Status); Meant(d) {
			best = append(d, Difference{Row: Merged, Aspect: "denial", Direct: direct.Status.Message, Through: through.Status.Message})
			break
		}
	}
	if best == nil {
		return shown, nil
	}
	return append(best, untold(others, through.Status, paths)...), nil
}

// untold are denials of others that the dispatcher does not tell of.
func untold(others []caller.Result, is metav1.Status, paths int) []Difference {
	row := ""
	if paths > 1 {
		row = Paths
	}
	for _, other := range others {
		if uncalled(other.Status, is) {
			return []Difference{{Row: FirstRefuse, Aspect: "denials", Direct: "all", Through: is.Message}}
		}
	}
	var all []Difference
	for _, other := range others {
		if !other.Allowed && !contains(is, other.Status) {
			all = append(all, Difference{Row: row, Aspect: "denial", Direct: other.Status.Message, Through: is.Message})
		}
	}
	return all
}

// uncalled reports whether is tells of a denial that needed no call.
func uncalled(was, is metav1.Status) bool {
	return dryRun.MatchString(was.Message) && strings.Contains(is.Message, was.Message) ||
		strings.Contains(is.Message, "(NotConvertible ")
}

// Texts of the API server by which one kind of denial is known from another.
var (
	rejected = regexp.MustCompile(`(?s)^admission webhook "[^"]+" denied the request.*$`)
	failed   = regexp.MustCompile(`failed calling webhook "[^"]+"`)
	named    = regexp.MustCompile(`webhook "[^"]+"`)
	dryRun   = regexp.MustCompile(`^admission webhook "[^"]+" does not support dry run$`)
)

// told tells how is differs from the denial was.
func told(was, is metav1.Status) []Difference {
	var all []Difference
	if was.Code != is.Code {
		d := Difference{Aspect: "code", Direct: text(was), Through: text(is)}
		if failed.MatchString(was.Message) && slices.Contains(failureCodes, is.Code) {
			d.Row = Causes
		}
		all = append(all, d)
	}
	switch {
	case !contains(is, was):
		all = append(all, Difference{Aspect: "message", Direct: was.Message, Through: is.Message})
	case rejected.MatchString(was.Message) && !strings.Contains(was.Message, script.RefusalText) && !strings.Contains(is.Message, was.Message):
		d := Difference{Row: Texts, Aspect: "message", Direct: was.Message, Through: is.Message}
		if !altered(was.Message) && !strings.Contains(is.Message, shown(was.Message)) {
			d.Row = ""
		}
		all = append(all, d)
	}
	return append(all, retry(was, is)...)
}

// contains tells whether is tells of the denial was, as far as it is passed on.
// Texts of the API server's own, about patches for example, need not be the same.
func contains(is, was metav1.Status) bool {
	switch failure := failed.FindString(was.Message); {
	case strings.Contains(was.Message, script.RefusalText):
		return strings.Contains(is.Message, named.FindString(was.Message))
	case failure != "":
		return strings.Contains(is.Message, failure)
	case rejected.MatchString(was.Message):
		return strings.Contains(plain(is.Message), plain(cut(was.Message, maxMessageRunes)))
	case dryRun.MatchString(was.Message):
		return strings.Contains(is.Message, was.Message)
	}
	return true
}

func text(s metav1.Status) string { return fmt.Sprintf("%d %s", s.Code, s.Message) }

func retry(was, is metav1.Status) []Difference {
	wanted, got := retryAfter(was), retryAfter(is)
	if wanted == got || !rejected.MatchString(was.Message) {
		return nil
	}
	d := Difference{Aspect: "retryAfterSeconds", Direct: wanted, Through: got}
	if wanted > maxRetryAfter && got == maxRetryAfter {
		d.Row = RetryAfter
	}
	return []Difference{d}
}

func retryAfter(s metav1.Status) int32 {
	if s.Details == nil {
		return 0
	}
	return s.Details.RetryAfterSeconds
}

// failureCodes are what the dispatcher says where the API server says 500.
var failureCodes = []int32{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
