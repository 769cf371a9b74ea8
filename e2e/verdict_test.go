// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// verdict is an answer in the words of a cluster that calls its webhooks itself,
// so that those of a cluster behind the dispatcher can be compared.
type verdict struct {
	Code        int               `json:"code"`
	Reason      string            `json:"reason,omitempty"`
	Denials     []string          `json:"denials,omitempty"` // or the one message of another failure
	Object      map[string]any    `json:"object,omitempty"`
	Warnings    []string          `json:"warnings,omitempty"`
	Mutated     []string          `json:"mutated,omitempty"`    // by these webhooks
	Patch       []string          `json:"patch,omitempty"`      // in any order: what it makes is in Object
	FailedOpen  []string          `json:"failedOpen,omitempty"` // these webhooks
	Annotations map[string]string `json:"annotations,omitempty"`

	changedBy []string // webhooks whose patches the dispatcher passed on
	changed   bool     // the API server applied what the dispatcher passed on
}

// ourWebhook is a webhook of the dispatcher's registration.
const ourWebhook = `[a-z0-9-]+\.admission-dispatcher\.dispatcher\.dev`

var (
	ourName       = regexp.MustCompile(`^` + ourWebhook + `$`)
	ourDenial     = regexp.MustCompile(`^admission webhook "` + ourWebhook + `" denied the request: `)
	ourFailure    = regexp.MustCompile(`failed calling webhook "` + ourWebhook + `"`)
	ourWarning    = regexp.MustCompile(`^failed calling webhook "`)
	ourAnnotation = regexp.MustCompile(`^` + ourWebhook + `/dispatcher\.dev\.(.*)$`)
	ofWebhook     = regexp.MustCompile(`^` + ourWebhook + `/(.*)\.([^.]*)$`)
	ofRound       = regexp.MustCompile(`^(mutation|patch|failed-open\.mutation|failed-open\.validating)\.webhook\.admission\.k8s\.io/round_`)
	uuid          = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`) // a new one for each mutation
	namedFirst    = regexp.MustCompile(`^(?:[^/ ]*/)?([^ ]*) \(`)
)

// verdict translates an answer.
func (a answer) verdict() verdict {
	v := verdict{Code: a.code, Object: a.object, Annotations: map[string]string{}}
	if a.status != nil {
		v.Reason, v.Denials = string(a.status.Reason), denialsOf(uuid.ReplaceAllString(a.status.Message, "UUID"))
	}
	for _, key := range slices.Sorted(maps.Keys(a.audit)) {
		v.annotate(key, a.audit[key])
	}
	if v.changed {
		v.Mutated = append(v.Mutated, v.changedBy...)
	}
	for _, w := range a.warnings {
		if len(v.FailedOpen) == 0 || !ourWarning.MatchString(w) {
			v.Warnings = append(v.Warnings, w)
		}
	}
	slices.Sort(v.FailedOpen)
	return v
}

// denialsOf splits a message into those of webhooks: behind the dispatcher each
// begins a line, and its further lines are indented.
func denialsOf(message string) []string {
	inner := ourDenial.ReplaceAllString(message, "")
	if inner == message {
		return []string{unindented(message)}
	}
	var all []string
	for line := range strings.SplitSeq(inner, "\n") {
		if len(all) > 0 && (line == "" || strings.HasPrefix(line, " ")) {
			all[len(all)-1] += "\n" + line
		} else {
			all = append(all, line)
		}
	}
	for i := range all {
		all[i] = unindented(all[i])
	}
	return all
}

func unindented(message string) string {
	lines := strings.Split(message, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// annotate takes one annotation of the audit event.
func (v *verdict) annotate(key, value string) {
	if m := ourAnnotation.FindStringSubmatch(key); m != nil {
		switch m[1] {
		case "mutated":
			v.changedBy = append(v.changedBy, named(value)...)
		case "failed-open":
			v.FailedOpen = append(v.FailedOpen, named(value)...)
		}
		return
	}
	if m := ofWebhook.FindStringSubmatch(key); m != nil {
		v.Annotations[m[1]+"/"+m[2]] = value
		return
	}
	if m := ofRound.FindStringSubmatch(key); m != nil {
		v.annotateRound(m[1], value)
		return
	}
	v.Annotations[key] = value
}

// annotateRound takes what the API server says of a webhook that it called.
func (v *verdict) annotateRound(what, value string) {
	var of struct {
		Webhook string
		Mutated bool
		Patch   []json.RawMessage
	}
	switch what {
	case "patch":
		if json.Unmarshal([]byte(value), &of) == nil {
			for _, operation := range of.Patch {
				v.Patch = append(v.Patch, string(operation))
			}
			slices.Sort(v.Patch)
		}
	case "mutation":
		if json.Unmarshal([]byte(value), &of) != nil || !of.Mutated {
			return
		}
		if ourName.MatchString(of.Webhook) {
			v.changed = true
		} else {
			v.Mutated = append(v.Mutated, of.Webhook)
		}
	default:
		v.FailedOpen = append(v.FailedOpen, value)
	}
}

// named returns the webhooks that an annotation of the dispatcher lists.
func named(value string) []string {
	var all []string
	for part := range strings.SplitSeq(value, "; ") {
		if m := namedFirst.FindStringSubmatch(part); m != nil {
			all = append(all, m[1])
		}
	}
	return all
}

func (v verdict) String() string {
	data, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// allowed reports whether the request was done.
func (v verdict) allowed() bool { return v.Code < 400 }

// unanswered reports whether a call to a webhook failed.
func (v verdict) unanswered() bool {
	return len(v.FailedOpen) > 0 || strings.Contains(strings.Join(v.Denials, "\n"), "failed calling webhook")
}

// dispatcherFailed reports whether the call that failed is one to the dispatcher.
func (v verdict) dispatcherFailed() bool {
	return slices.ContainsFunc(v.FailedOpen, ourName.MatchString) || slices.ContainsFunc(v.Denials, ourFailure.MatchString)
}
