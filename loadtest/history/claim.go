// SPDX-License-Identifier: Apache-2.0

package history

import (
	"regexp"
	"strings"
)

// kind is what the dispatcher says that a webhook came to. Those that deny come
// first, in the order of their lines in a message.
type kind int

const (
	saidDenied kind = iota
	saidRefused
	saidFailed
	saidFailedOpen
	saidSoftened
	saidSkipped
)

// claim is what the answer says about one webhook.
type claim struct {
	kind    kind
	webhook string
	cause   Cause  // empty for a denial
	text    string // what the webhook is quoted with
}

// called is how a text names a webhook, a plugin, or a policy with its binding.
const called = `(?:webhook "|plugin "|(?:ValidatingAdmissionPolicy|policy) '[^']+' with binding ')([^"']+)["']`

// The texts are part of the contract: users of kube-apiserver search for them.
var (
	policyLine   = regexp.MustCompile(`^` + called + ` denied request: (.*)$`)
	deniedLine   = regexp.MustCompile(`^admission (?:webhook|plugin) "([^"]+)" denied the request(?:: (.*)| without explanation)$`)
	failedLine   = regexp.MustCompile(`^Internal error occurred: failed calling ` + called + `: (\w+) after \S+ \(.*platform problem`)
	refusedLine  = regexp.MustCompile(`^Internal error occurred: .* \(` + called + `, (\w+), whatever the failurePolicy\)$`)
	matchLine    = regexp.MustCompile(`^it cannot be decided whether ` + called + ` must be asked: .* \((\w+)\)$`)
	dryRunLine   = regexp.MustCompile(`^admission webhook "([^"]+)" does not support dry run`)
	openWarning  = regexp.MustCompile(`^failed calling ` + called + ` \((\w+) after `)
	skipWarning  = regexp.MustCompile(`^` + called + ` was skipped \((\w+)\)`)
	anyWebhook   = regexp.MustCompile(called)
	annotated    = regexp.MustCompile(`(?:^|; )(\S+) \((\w+)`)
	softenedText = "would be denied if enforced: "
)

// readLine reads one line of the message of a denial.
func readLine(line string) (claim, bool) {
	if m := deniedLine.FindStringSubmatch(line); m != nil {
		return claim{kind: saidDenied, webhook: m[1], text: m[2]}, true
	}
	if m := policyLine.FindStringSubmatch(line); m != nil {
		return claim{kind: saidDenied, webhook: m[1], text: m[2]}, true
	}
	if m := failedLine.FindStringSubmatch(line); m != nil {
		return claim{kind: saidFailed, webhook: m[1], cause: Cause(m[2])}, true
	}
	if m := refusedLine.FindStringSubmatch(line); m != nil {
		return claim{kind: saidRefused, webhook: m[1], cause: Cause(m[2])}, true
	}
	if m := matchLine.FindStringSubmatch(line); m != nil {
		return claim{kind: saidRefused, webhook: m[1], cause: Cause(m[2])}, true
	}
	if m := dryRunLine.FindStringSubmatch(line); m != nil {
		return claim{kind: saidRefused, webhook: m[1], cause: DryRun}, true
	}
	return claim{}, false
}

// readWarning reads one warning; not ok is one of a webhook's own.
func readWarning(text string) (claim, bool) {
	if m := openWarning.FindStringSubmatch(text); m != nil {
		return claim{kind: saidFailedOpen, webhook: m[1], cause: Cause(m[2])}, true
	}
	if m := skipWarning.FindStringSubmatch(text); m != nil {
		return claim{kind: saidSkipped, webhook: m[1], cause: Cause(m[2])}, true
	}
	line, ok := strings.CutPrefix(text, softenedText)
	if !ok {
		return claim{}, false
	}
	cl, _ := readLine(line)
	if m := anyWebhook.FindStringSubmatch(line); m != nil { // a long one is cut
		cl.webhook = m[1]
	}
	cl.kind = saidSoftened
	return cl, true
}

// Keys of the audit annotations.
const (
	annotationPrefix   = "dispatcher.dev."
	bypassAnnotation   = annotationPrefix + "bypass"
	snapshotAnnotation = annotationPrefix + "snapshot"
	failOpenAnnotation = annotationPrefix + "failed-open"
	softenedAnnotation = annotationPrefix + "softened"
	skippedAnnotation  = annotationPrefix + "skipped"
	deniedAnnotation   = annotationPrefix + "denied"
	mutatedAnnotation  = annotationPrefix + "mutated"
)

// listed returns the webhooks that the annotation lists. Mutated ones are given
// as configuration/webhook.
func (c *Call) listed(key string) []string {
	var names []string
	for _, m := range annotated.FindAllStringSubmatch(c.Annotations[key], -1) {
		names = append(names, m[1][strings.LastIndexByte(m[1], '/')+1:])
	}
	return names
}

// announced says which annotation lists what a warning says as well.
var announced = []struct {
	key  string
	kind kind
}{
	{failOpenAnnotation, saidFailedOpen},
	{softenedAnnotation, saidSoftened},
	{skippedAnnotation, saidSkipped},
}
