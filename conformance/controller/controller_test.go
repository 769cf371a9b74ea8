// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"
)

// requests is how many each plugin is asked about, unless CONFORMANCE_N says another number.
const requests = 300

// K10 K18 K19 The plugins decide, word for word, and change objects as kube-apiserver's plugins of
// their names. Where those fail with an error that is no status, of which the API server
// makes code 500, the code is 403.
func TestK10Controllers(t *testing.T) {
	n, seed := requests, uint64(time.Now().UnixNano())
	if s := os.Getenv("CONFORMANCE_N"); s != "" {
		n = must(strconv.Atoi(s))
	}
	if s := os.Getenv("CONFORMANCE_SEED"); s != "" {
		seed = must(strconv.ParseUint(s, 10, 64))
	}
	t.Logf("CONFORMANCE_SEED=%d", seed)
	original, own := startOriginal(t), newOurs(t)
	for i, c := range slices.Concat(sample.Controllers, asking) {
		t.Run(c.Name, func(t *testing.T) {
			d := sample.NewDice(seed, uint64(i))
			came := map[string]int{}
			for range n {
				q := &request{Request: *c.Random(d), plugin: c.Name, rights: d.Uint64()}
				if q.Namespace == "" && !c.Clustered {
					q.Namespace = "shop"
				}
				compare(t, own, original, q, came)
				if t.Failed() {
					return
				}
			}
			t.Log(n, "requests:", came)
			for _, what := range c.Comes {
				if came[what] < n/100 {
					t.Errorf("%s came up %d times in %d", what, came[what], n)
				}
			}
		})
	}
}

// compare asks both, and fails the test where they differ. What one has mutated it is asked
// about once more.
func compare(t *testing.T, own *ours, original *original, q *request, came map[string]int) {
	t.Helper()
	theirs := original.ask(t, q)
	p := own.configured(t, q)
	if p.Mutates() != theirs.Mutates || p.Validates() != theirs.Validates {
		t.Fatalf("it mutates: %t, theirs %t; it validates: %t, theirs %t", p.Mutates(), theirs.Mutates, p.Validates(), theirs.Validates)
	}
	if theirs.Mutates {
		got, object := q.ask(t, p, true, theirs.Object, theirs.OldObject)
		differs(t, q, "mutating", got, theirs.Mutation, came)
		if theirs.Mutation == nil && got.Allowed && !t.Failed() {
			same(t, q, object, theirs.Mutated)
			if string(object) != string(theirs.Object) && q.again == nil {
				came["mutated"]++
				again := *q
				again.again = object
				compare(t, own, original, &again, came)
			}
		}
	}
	if theirs.Validates {
		got, _ := q.ask(t, p, false, theirs.Object, theirs.OldObject)
		differs(t, q, "validating", got, theirs.Validation, came)
	}
}

// differs fails the test unless the verdicts are the same.
func differs(t *testing.T, q *request, phase string, got answer, want *denial, came map[string]int) {
	t.Helper()
	switch {
	case q.plugin == "LimitRanger" && strings.Contains(got.Message, "a quantity is too large to be compared with the limits"):
		came[phase+" too large"]++ // for which the original compares whatever is left of it in an int64
	case got.err != nil:
		t.Errorf("%s: it has no answer: %v, theirs %+v\n%s", phase, got.err, want, q)
	case want == nil:
		came[phase+" allowed"]++
		if !got.Allowed {
			t.Errorf("%s: it denies: %d %s\n%s", phase, got.Code, got.Message, q)
		}
	case got.Allowed:
		t.Errorf("%s: it allows, theirs %+v\n%s", phase, want, q)
	default:
		code, reason := want.Code, want.Reason
		if want.Plain {
			code, reason = 403, "Forbidden"
		}
		came[fmt.Sprint(phase, " denied ", want.Code)]++
		if got.Code != code || got.Reason != reason || !sameText(got.Message, want.Message) {
			t.Errorf("%s: it denies\n%d %s %s\ntheirs\n%d %s %s\n%s", phase, got.Code, got.Reason, got.Message, want.Code, want.Reason, want.Message, q)
		}
	}
}

// violation is where one of LimitRanger's begins. They are in no order there.
var violation = regexp.MustCompile(`(?:, |\[|: )(?:minimum |maximum |[A-Za-z0-9./-]+ max limit to request ratio )`)

// longest is how long a message is at most here.
const longest = 4096

// sameText reports whether two messages are the same, but for what kube-apiserver says in
// the order of a map.
func sameText(ours, theirs string) bool {
	const conflict = "conflict: runtimeClass.scheduling.nodeSelector["
	if before, _, ok := strings.Cut(theirs, conflict); ok { // the first of several
		return strings.HasPrefix(ours, before+conflict)
	}
	if violation.MatchString(theirs) {
		cut := len(theirs) > longest
		split := func(s string) (list []string) {
			at := violation.FindAllStringIndex(s, -1)
			for i := range at {
				end := len(s)
				if i+1 < len(at) {
					end = at[i+1][0]
				}
				list = append(list, strings.Trim(s[at[i][0]:end], ",[]: "))
			}
			return list
		}
		a, b := split(ours), split(theirs)
		if cut { // what is there must be theirs, but for the last, which is cut
			return len(ours) == longest && !slices.ContainsFunc(a[:len(a)-1], func(s string) bool { return !slices.Contains(b, s) })
		}
		slices.Sort(a)
		slices.Sort(b)
		return slices.Equal(a, b) && len(ours) == len(theirs)
	}
	return ours == theirs
}

// same fails the test unless the objects are, whatever their quantities are written as.
func same(t *testing.T, q *request, ours, theirs json.RawMessage) {
	t.Helper()
	switch q.Kind {
	case "Pod":
		sameAs[corev1.Pod](t, q, ours, theirs)
	case "PersistentVolumeClaim":
		sameAs[corev1.PersistentVolumeClaim](t, q, ours, theirs)
	case "Ingress":
		sameAs[networkingv1.Ingress](t, q, ours, theirs)
	case "PriorityClass":
		sameAs[schedulingv1.PriorityClass](t, q, ours, theirs)
	case "CertificateSigningRequest":
		sameAs[certificatesv1.CertificateSigningRequest](t, q, ours, theirs)
	default:
		t.Fatal(q.Kind)
	}
}

func sameAs[T any](t *testing.T, q *request, ours, theirs json.RawMessage) {
	t.Helper()
	var a, b T
	if err := json.Unmarshal(ours, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(theirs, &b); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(a, b) {
		t.Errorf("-theirs +ours:\n%s\n%s", cmp.Diff(string(theirs), string(ours)), q)
	}
}

// String is the request as it can be read.
func (q *request) String() string {
	text, _ := json.MarshalIndent(map[string]any{
		"plugin": q.plugin, "configuration": q.Configuration, "stored": q.Stored, "operation": q.Operation, "subresource": q.Subresource,
		"namespace": q.Namespace, "name": q.Name, "object": q.asked(), "oldObject": q.Old,
	}, "", " ")
	return string(text)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
