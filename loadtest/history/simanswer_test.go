// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"strings"
)

// answer merges outcomes into the answer that the caller sees.
func (s *simulator) answer(c *Call, all []outcome, hash string) {
	all = byConfiguration(all)
	denials := slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return !o.denies() })
	slices.SortStableFunc(denials, func(x, y outcome) int { return int(x.kind - y.kind) })
	if s.bug == denialBecomesAllow && len(denials) > 0 && s.rare() {
		denials = nil
	}
	if c.Allowed = len(denials) == 0; c.Allowed {
		s.patch(c, all)
	} else {
		s.deny(c, all, denials)
	}
	s.announce(c, all)
	if s.bug == mutedWarnings {
		c.Warnings = nil
	}
	if s.bug == mutedAnnotations {
		delete(c.Annotations, failOpenAnnotation)
	}
	if len(c.Annotations) > 0 {
		c.Annotations[snapshotAnnotation] = hash
	}
}

func (s *simulator) deny(c *Call, all, denials []outcome) {
	c.Code = denials[0].code
	if s.bug == lastCode {
		c.Code = denials[len(denials)-1].code
	}
	if s.bug == wrongName && s.rare() {
		for _, o := range all {
			if o.allowed {
				denials[0].webhook = o.webhook
			}
		}
	}
	if s.bug == firstDenialOnly {
		denials = denials[:1]
	}
	if s.bug == denialsSwapped {
		slices.Reverse(denials)
	}
	var lines, listed []string
	for i := range denials {
		lines = append(lines, line(c, &denials[i]))
		word := denials[i].cause
		if word == "" {
			word = "Denied"
		}
		listed = append(listed, fmt.Sprintf("%s (%s)", denials[i].webhook.Name, word))
	}
	c.Message = strings.Join(lines, "\n")
	c.Annotations[deniedAnnotation] = strings.Join(listed, "; ")
}

// line words one denial.
func line(c *Call, o *outcome) string {
	name := o.webhook.Name
	switch {
	case o.kind == saidDenied:
		return fmt.Sprintf("admission webhook %q denied the request: %s", name, o.text)
	case o.kind == saidRefused && o.cause == DryRun:
		return fmt.Sprintf("admission webhook %q does not support dry run", name)
	case o.kind == saidRefused:
		return fmt.Sprintf("Internal error occurred: the answer is ambiguous (webhook %q, %s, whatever the failurePolicy)", name, o.cause)
	}
	return fmt.Sprintf("Internal error occurred: failed calling webhook %q: %s after %v (conf/%s, failurePolicy Fail; this is a platform problem, not a decision of the webhook): (it did not work)",
		name, o.cause, o.at-c.Sent, name)
}

// patch concatenates the patches.
func (s *simulator) patch(c *Call, all []outcome) {
	var ops, listed []string
	for _, o := range all {
		if len(o.patch) > 0 {
			ops = append(ops, strings.Trim(string(o.patch), "[]"))
			listed = append(listed, fmt.Sprintf("conf/%s (1 operations, round 0)", o.webhook.Name))
		}
	}
	if len(ops) == 0 {
		return
	}
	if s.bug == patchesSwapped {
		slices.Reverse(ops)
	}
	c.Patch = []byte("[" + strings.Join(ops, ",") + "]")
	c.Annotations[mutatedAnnotation] = strings.Join(listed, "; ")
}

// announce writes the warnings and the annotations of what did not deny.
func (s *simulator) announce(c *Call, all []outcome) {
	lists := map[string][]string{}
	for i := range all {
		o := &all[i]
		if o.allowed || o.denies() {
			continue
		}
		name := o.webhook.Name
		switch o.kind {
		case saidFailedOpen:
			c.Warnings = append(c.Warnings, fmt.Sprintf("failed calling webhook %q (%s after %v), failurePolicy Ignore: the request was not checked by it", name, o.cause, o.at))
			lists[failOpenAnnotation] = append(lists[failOpenAnnotation], fmt.Sprintf("%s (%s, failurePolicy Ignore)", name, o.cause))
		case saidSkipped:
			c.Warnings = append(c.Warnings, fmt.Sprintf("webhook %q was skipped (%s): no dry run", name, o.cause))
			lists[skippedAnnotation] = append(lists[skippedAnnotation], fmt.Sprintf("%s (%s)", name, o.cause))
		default:
			c.Warnings = append(c.Warnings, "would be denied if enforced: "+o.text)
			lists[softenedAnnotation] = append(lists[softenedAnnotation], fmt.Sprintf("%s (Denied)", name))
		}
	}
	for key, list := range lists {
		c.Annotations[key] = strings.Join(list, "; ")
	}
	c.Warnings = append(c.Warnings, "a warning of a webhook's own")
}
