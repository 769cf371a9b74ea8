// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/admission-dispatcher/dispatcher/dispatcher"

// Label is one label of a Family. Its values are a closed set, or names from the
// configuration; never anything that a request brings.
type Label struct {
	Name   string
	Values []string // the closed set; nil: names from the configuration
}

func labels(list ...Label) []Label { return list }

func named(name string) Label { return Label{Name: name} }

func closed(name string, values ...string) Label { return Label{Name: name, Values: values} }

func cluster() Label       { return named("cluster") }
func configuration() Label { return named("configuration") }
func webhook() Label       { return named("webhook") }

func phase() Label { return closed("phase", "validate", "mutate") }

// decision is what an admission came to.
func decision() Label {
	values := make([]string, dispatcher.Decisions)
	for d := range values {
		values[d] = dispatcher.Decision(d).String()
	}
	return closed("decision", values...)
}

// outcome is what an invocation came to, in the words of dispatcher.Result.
func outcome() Label {
	values := make([]string, results)
	for r := range values {
		values[r] = dispatcher.Result(r).String()
	}
	return closed("outcome", values...)
}

// shadowOutcome is what an invocation in mode Shadow would have come to.
func shadowOutcome() Label {
	return closed("outcome", "allowed", "denied", "refused", "failed", "failed_open", "skipped", droppedShadow)
}

// droppedShadow is a Shadow call that was not made.
const droppedShadow = "dropped"

// reason is why somebody was turned away, in the words of internal/server.
func reason() Label {
	return closed("reason", "malformed", "bad_timeout", "cut_short", "bad_encoding", "not_review", "forbidden", "no_route", "not_post",
		"too_slow", "no_length", "too_large", "long_uri", "wrong_type", "wrong_encoding", "unknown_expect", "long_headers", "panicked",
		"not_ready", "crowded", "no_memory", "handshake", "too_many_connections")
}

// cause is why there is no usable answer, in the words of webhook.Cause.
func cause() Label {
	return closed("cause", "Timeout", "NoTimeLeft", "Unreachable", "BreakerOpen", "TLS", "HTTPStatus", "BadAnswer",
		"BadPatch", "NotConvertible", "Panic", "Shed", "Pending", "MatchError", "DryRun")
}
