// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
)

// OnlyKnownKinds is a Source in which an object of a kind that the dispatcher does not read
// is a problem. In other Sources such objects are skipped: the files of public projects
// hold everything that a project needs, and its webhook configurations with it.
type OnlyKnownKinds struct{ Source }

// Read implements Source.
func (s OnlyKnownKinds) Read(ctx context.Context) []File {
	files := s.Source.Read(ctx)
	for i := range files {
		files[i].OnlyKnownKinds = true
	}
	return files
}

// unread is an object of a kind that the dispatcher does not read by itself.
type unread struct {
	Origin
	metav1.TypeMeta
	doc     json.RawMessage
	refused bool // unless it is a Param
}

// leftOver decodes the objects that some policy has as params, once all policies are known.
// There is no other use for what is left: it is skipped, with one warning for each file, or
// refused.
func (d *decoded) leftOver() {
	var skips []skipped
	for _, u := range d.unread {
		wanted, misspelt := resembles(u.TypeMeta)
		switch {
		case d.paramKinds[u.TypeMeta]:
			if err := d.param(u); err != nil {
				d.report(u.Origin, err)
			}
		case misspelt, u.refused:
			d.report(u.Origin, fmt.Errorf("apiVersion %q, kind %q is not one that the dispatcher reads, nor the paramKind of a policy%s", u.APIVersion, u.Kind, wanted))
		default:
			at := slices.IndexFunc(skips, func(s skipped) bool { return s.file == u.File })
			if at < 0 {
				at, skips = len(skips), append(skips, skipped{file: u.File, kinds: map[string]int{}})
			}
			skips[at].kinds[u.Kind]++
			skips[at].count++
		}
	}
	for i := range skips {
		d.warnings = append(d.warnings, skips[i].warning())
	}
}

// isParam reports whether one of the objects is a Param.
func (d *decoded) isParam(list []unread) bool {
	return slices.ContainsFunc(list, func(u unread) bool { return d.paramKinds[u.TypeMeta] })
}

// skipped are the objects of one file that are skipped.
type skipped struct {
	file  string
	kinds map[string]int
	count int
}

// mostKinds bounds how many kinds a warning names.
const mostKinds = 8

func (s *skipped) warning() Problem {
	names := make([]string, 0, len(s.kinds))
	for kind, n := range s.kinds {
		names = append(names, fmt.Sprintf("%s (%d)", kind, n))
	}
	slices.Sort(names)
	if more := len(names) - mostKinds; more > 0 {
		names = append(names[:mostKinds], fmt.Sprintf("and %d more kinds", more))
	}
	objects := "objects"
	if s.count == 1 {
		objects = "object"
	}
	return Problem{File: s.file, Reason: fmt.Sprintf("skipped: %d %s of kinds that the dispatcher does not read: %s", s.count, objects, strings.Join(names, ", "))}.bounded()
}

// groups are the API groups that are read: what is of one, and of no kind that is read, is
// misspelt or of another version.
func groups() []string {
	return []string{v1alpha1.Group, "admissionregistration.k8s.io", "apiserver.config.k8s.io", "apiserver.k8s.io"}
}

// distinctKinds are read and belong to nobody else, whatever group somebody writes before them.
func distinctKinds() []string {
	return []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "WebhookBinding", admissionConfigurationKind}
}

// misspelling is how many letters of a group or kind may be wrong, added or missing for it
// to be taken for a misspelt one.
const misspelling = 2

// resembles reports whether an object that is not read looks like one that should be, and
// what that is. To skip such a one would leave a policy out in silence.
func resembles(t metav1.TypeMeta) (wanted string, misspelt bool) {
	group, _, _ := strings.Cut(t.APIVersion, "/")
	for _, kind := range distinctKinds() {
		if distance(strings.ToLower(t.Kind), strings.ToLower(kind)) <= misspelling {
			return "; did you mean kind " + kind + " of " + strings.Join(versionsOf(kind), " or ") + "?", true
		}
	}
	for _, known := range groups() {
		if strings.EqualFold(group, known) {
			return "", true
		}
		if len(group) > misspelling && distance(strings.ToLower(group), known) <= misspelling {
			return "; did you mean group " + known + "?", true
		}
	}
	return "", false
}

// versionsOf returns the apiVersions in which a distinct kind is read.
func versionsOf(kind string) []string {
	switch kind {
	case "WebhookBinding":
		return []string{ownVersion}
	case admissionConfigurationKind:
		return []string{configVersion}
	}
	return []string{v1Version, betaVersion}
}

// farthest is what distance returns for texts that are too long to be compared.
const farthest = 1 << 10

// distance returns how many letters have to be changed, added or dropped to make one text
// of the other (Levenshtein).
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return farthest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before, row[j+1] = row[j+1], min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
