// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// difference is one that docs/semantics.md has a row for.
type difference struct {
	row string // as the row, or the sentence, begins
	// behind returns what the dispatcher's cluster must answer, given what the
	// other one and it did answer; false: the row is not about this.
	behind func(r request, alone, behind verdict) (verdict, bool)
}

// differences are tried in this order. TestGatekeeper shows each.
var differences = []difference{
	{"| namespaces `kube-system` and `kube-node-lease` |", inBypassedNamespace},
	{"| `coordination.k8s.io/leases` |", ofLease},
	{"| what the API server writes itself: the user `system:apiserver`", byAPIServer},
	{"C24, C25 (always) |", fewWarnings},
	{"| C23", cleanMessage},
	{"The code of a failure is ours:", failedClosed},
	{"| further failOpen rules |", brokeGlass},
	{"| how a node joins:", nodeJoins},
	{"| B4 (always) | a custom resource with a case variant", caseVariant},
}

func inBypassedNamespace(r request, _, behind verdict) (verdict, bool) {
	return unjudged(behind), r.namespace == "kube-system" || r.namespace == "kube-node-lease"
}

func ofLease(r request, _, behind verdict) (verdict, bool) {
	return unjudged(behind), r.resource == "leases"
}

func byAPIServer(r request, alone, behind verdict) (verdict, bool) {
	return unjudged(behind), r.user == "system:apiserver" || needsAddress(alone)
}

// needsAddress reports whether a Service failed because the API server's own
// creation of its IPAddress was refused.
func needsAddress(v verdict) bool {
	return strings.Contains(strings.Join(v.Denials, ""), "failed to allocate IP: Internal error occurred: failed calling webhook")
}

// unjudged is a verdict that no webhook had a part in.
func unjudged(v verdict) verdict {
	if !v.allowed() {
		v.Code, v.Denials = http.StatusOK, nil
	}
	v.Mutated, v.Patch, v.Warnings, v.FailedOpen = nil, nil, nil, nil
	return v
}

// The bounds of texts, of each webhook.
const (
	messageRunes = 4096
	warningRunes = 256
	warningCount = 16
)

// fewWarnings bounds warnings, and cleans them.
func fewWarnings(_ request, alone, _ verdict) (verdict, bool) {
	warnings := slices.Clone(alone.Warnings)
	for i, w := range warnings {
		warnings[i] = cleaned(w, warningRunes)
	}
	alone.Warnings = warnings[:min(len(warnings), warningCount)]
	return alone, true
}

// cleanMessage bounds messages, and cleans them. Such a denial may come with many
// warnings.
func cleanMessage(r request, alone, behind verdict) (verdict, bool) {
	denials := slices.Clone(alone.Denials)
	for i, d := range denials {
		if head, message, ok := strings.Cut(d, " denied the request: "); ok {
			denials[i] = head + " denied the request: " + cleaned(message, messageRunes)
		}
	}
	alone.Denials = denials
	return fewWarnings(r, alone, behind)
}

// cleaned returns at most limit runes of text: what controls a terminal becomes a
// space, and what changes the direction of text shows.
func cleaned(text string, limit int) string {
	var b strings.Builder
	for _, r := range text {
		if limit--; limit < 0 {
			break
		}
		switch {
		case r == '\n':
			b.WriteRune(r)
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			b.WriteRune(' ')
		case unicode.Is(unicode.Bidi_Control, r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// failedClosed: the same webhook failed, in words and with a code of the dispatcher's.
func failedClosed(_ request, alone, behind verdict) (verdict, bool) {
	name := failedWebhook.FindString(strings.Join(alone.Denials, ""))
	ours := slices.Contains([]int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, behind.Code)
	alone.Code, alone.Reason, alone.Denials = behind.Code, behind.Reason, behind.Denials
	return alone, name != "" && ours && slices.ContainsFunc(behind.Denials, func(d string) bool { return strings.HasPrefix(d, "Internal error occurred: "+name) })
}

var failedWebhook = regexp.MustCompile(`failed calling webhook "[^"]*"`)

func brokeGlass(r request, alone, behind verdict) (verdict, bool) {
	return behind, breaksGlass(r) && failedOpenInstead(alone, behind)
}

func nodeJoins(r request, alone, behind verdict) (verdict, bool) {
	return behind, joins(r) && failedOpenInstead(alone, behind)
}

// failedOpenInstead reports whether the other cluster failed closed, and this one
// had a rule that says not to.
func failedOpenInstead(alone, behind verdict) bool {
	return !alone.allowed() && alone.unanswered() && behind.allowed() && len(behind.FailedOpen) > 0
}

// breaksGlass reports whether the failOpen rule of the test holds.
func breaksGlass(r request) bool { return slices.Contains(r.groups, "break-glass") }

// joins reports whether the default failOpen rule for nodes holds.
func joins(r request) bool { return r.resource == "nodes" && slices.Contains(r.groups, "system:nodes") }

// bypassed reports whether a default bypass holds.
func bypassed(r request) bool {
	return r.namespace == "kube-system" || r.namespace == "kube-node-lease" || r.resource == "leases" || r.user == "system:apiserver" ||
		r.resource == "nodes/status" && slices.Contains(r.groups, "system:nodes")
}

// excepted reports whether a missing answer, which blocked the request in the other
// cluster, must not block it.
func excepted(p pair) bool {
	return p.alone.unanswered() && (bypassed(p.request) || breaksGlass(p.request) || joins(p.request) || needsAddress(p.alone))
}

func caseVariant(r request, _, behind verdict) (verdict, bool) {
	return behind, strings.Contains(r.name, "two metadata") && !behind.allowed()
}

// explained returns the row that explains how two verdicts on a request differ: ""
// if they do not, and false if none does.
func explained(r request, alone, behind verdict) (string, bool) {
	if alone.String() == behind.String() {
		return "", true
	}
	for _, d := range differences {
		if want, ok := d.behind(r, alone, behind); ok && want.String() == behind.String() {
			return d.row, true
		}
	}
	return "", false
}

// Every difference that is granted here is documented.
func TestDifferencesAreRows(t *testing.T) {
	page, err := os.ReadFile("../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), d.row) {
			t.Errorf("docs/semantics.md has no row %q", d.row)
		}
	}
}
