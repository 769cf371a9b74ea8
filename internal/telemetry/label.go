// SPDX-License-Identifier: Apache-2.0

package telemetry

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
	return closed("decision", "allowed", "failed_open", "bypassed", "denied", "refused", "failed")
}

// outcome is what an invocation came to, in the words of dispatcher.Result.
func outcome() Label {
	return closed("outcome", "allowed", "denied", "refused", "failed", "failed_open", "skipped", "abandoned")
}

// cause is why there is no usable answer, in the words of webhook.Cause.
func cause() Label {
	return closed("cause", "Timeout", "NoTimeLeft", "Unreachable", "BreakerOpen", "TLS", "HTTPStatus", "BadAnswer",
		"BadPatch", "NotConvertible", "Panic", "Shed", "MatchError", "DryRun")
}
