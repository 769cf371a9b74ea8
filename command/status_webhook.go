// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

func printWebhooks(w io.Writer, s *status.Status) {
	targets, variants := map[string]*status.Target{}, map[string]int{}
	for i := range s.Targets {
		targets[s.Targets[i].ID] = &s.Targets[i]
	}
	for i := range s.Webhooks {
		variants[variantOf(&s.Webhooks[i])]++
	}
	section(w, "WEBHOOK\tPHASE\tCLUSTERS\tMODE\tPOLICY\tIF IT FAILS\tHEALTHY\tATTEMPTS\tP50\tP99\tLAST ERROR")
	for i := range s.Webhooks {
		h := &s.Webhooks[i]
		t := targets[h.Target]
		if t == nil {
			t = &status.Target{}
		}
		clusters := "all that call it"
		if variants[variantOf(h)] > 1 {
			clusters = names(s.ClustersOf(h.ID))
		}
		p50, p99 := "", ""
		if t.Latency.Attempts > 0 {
			p50, p99 = milliseconds(t.Latency.P50), milliseconds(t.Latency.P99)
		}
		served, attempts := healthOf(t), fmt.Sprint(t.Attempts)
		if h.Target == "" {
			served, attempts = h.Kind, ""
		}
		line(w, h.Label(), h.Phase, clusters, h.Mode, h.FailurePolicy, failing[h.OnFailure], served, attempts, p50, p99, cutText(t.LastErrorText()))
	}
}

// variantOf is what the variants of a webhook that bindings make share.
func variantOf(h *status.Webhook) string { return h.Phase + "/" + h.Label() }

// failing is what becomes of an admission when a call fails.
var failing = map[string]string{status.Deny: "denied", status.Allow: "allowed", status.Nothing: "no effect"}

// healthOf says how many Endpoints are healthy, and how many will be.
func healthOf(t *status.Target) string {
	healthy, recovering := 0, 0
	for i := range t.Endpoints {
		switch e := &t.Endpoints[i]; {
		case e.Healthy():
			healthy++
		case e.Recovering():
			recovering++
		}
	}
	text := fmt.Sprintf("%d/%d", healthy, len(t.Endpoints))
	if recovering > 0 {
		text += fmt.Sprintf(" (%d recovering)", recovering)
	}
	return text
}

// shownNames and shownText bound what a table shows of a list and of a text; the JSON has
// all.
const (
	shownNames = 3
	shownText  = 100 // runes
)

// names lists the first of them.
func names(list []string) string {
	if more := len(list) - shownNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:shownNames], ", "), more)
	}
	return strings.Join(list, ", ")
}

func cutText(text string) string {
	if runes := []rune(text); len(runes) > shownText {
		return string(runes[:shownText]) + "..."
	}
	return text
}

// printEndpoints prints those about which there is something to say.
func printEndpoints(w io.Writer, s *status.Status) {
	printed, left := 0, 0
	for i := range s.Targets {
		for j := range s.Targets[i].Endpoints {
			e := &s.Targets[i].Endpoints[j]
			switch {
			case e.Healthy():
				continue
			case printed == shownEndpoints:
				left++
				continue
			case printed == 0:
				section(w, "ENDPOINT\tURL\tCONDITION\tBREAKER\tSINCE\tLAST ERROR")
			}
			printed++
			text := ""
			if e.LastError != nil {
				text = fmt.Sprintf("%s, %s: %s", since(s, e.LastError.Time), e.LastError.Cause, e.LastError.Text)
			}
			line(w, e.Address, s.Targets[i].URL, e.Condition, e.State, since(s, e.Since), cutText(text))
		}
	}
	if left > 0 {
		line(w, fmt.Sprintf("and %d more", left))
	}
}

// shownEndpoints is how many of those that are not healthy are printed.
const shownEndpoints = 50
