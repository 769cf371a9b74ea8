// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"net/http"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/world"
)

// verdicts are the classes of what an API server decides by itself.
var verdicts = []string{
	"verdict: allowed, no webhook called",
	"verdict: allowed, object as it was",
	"verdict: allowed, object changed",
	"verdict: allowed, a call failed open",
	"verdict: allowed, with warnings",
	"verdict: allowed, after a second round",
	"verdict: denied by a mutating webhook",
	"verdict: denied by a validating webhook",
	"verdict: failed closed",
	"verdict: patch refused",
	"verdict: condition failed",
	"verdict: namespace unknown",
	"verdict: dry run not supported",
}

func verdictsOf(p *world.Played) []string {
	if !p.Direct.Allowed {
		return []string{"verdict: " + denialOf(&p.Direct)}
	}
	var all []string
	add := func(name string, holds bool) {
		if holds {
			all = append(all, "verdict: allowed, "+name)
		}
	}
	patched := hasAnnotation(&p.Direct, "patch.webhook.admission.k8s.io/")
	add("no webhook called", len(p.Direct.Annotations) == 0)
	add("object as it was", !patched)
	add("object changed", patched)
	add("a call failed open", hasAnnotation(&p.Direct, "failed-open."))
	add("with warnings", len(p.Direct.Warnings) > 0)
	add("after a second round", hasAnnotation(&p.Direct, "mutation.webhook.admission.k8s.io/round_1_"))
	return all
}

func hasAnnotation(r *caller.Result, prefix string) bool {
	for key := range r.Annotations {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// denialOf is the class of a denial.
func denialOf(r *caller.Result) string {
	switch text := r.Status.Message; {
	case strings.Contains(text, "denied the request") && r.Phase == caller.Mutating:
		return "denied by a mutating webhook"
	case strings.Contains(text, "denied the request"):
		return "denied by a validating webhook"
	case strings.Contains(text, "failed calling webhook"):
		return "failed closed"
	case strings.Contains(text, "does not support dry run"):
		return "dry run not supported"
	case r.Status.Code == http.StatusNotFound:
		return "namespace unknown"
	case r.Status.Code == http.StatusForbidden:
		return "condition failed"
	}
	return "patch refused"
}
