// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
)

// openAPI is where an API describes its kinds.
const openAPI = "/openapi/v3"

// describe answers with the index of the documents of all groups that have widgets, or with
// the document of one of them.
func describe(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == openAPI {
		_, _ = io.WriteString(rw, indexOfKinds)
		return
	}
	group := path.Base(path.Dir(r.URL.Path))
	_, _ = fmt.Fprintf(rw, documentOfWidgets, group)
}

const documentOfWidgets = `{"components":{"schemas":{"w":{"type":"object","x-kubernetes-group-version-kind":[{"group":%q,"version":"v1","kind":"Widget"}],
"x-kubernetes-preserve-unknown-fields":true,"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},
"metadata":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}}},
"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}`

// withoutEnd describes no kind: each document goes on for ever, as fast as it is read.
func withoutEnd(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == openAPI {
		describe(rw, r)
		return
	}
	_, err := io.WriteString(rw, `{"paths":[`)
	for more := strings.Repeat(`"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",`, 1000); err == nil; {
		_, err = io.WriteString(rw, more)
	}
}

// widgetsOf are custom resources of a group.
func widgetsOf(group string) []load.Resource {
	return []load.Resource{{Group: group, Version: "v1", Resource: "widgets", Kind: "Widget", Namespace: "shop", User: "user"}}
}

// newKinds are those that nobody has asked for when the fault begins.
var newKinds = func() (all []load.Resource) {
	for i := range 40 {
		all = append(all, widgetsOf(fmt.Sprintf("g-%d.example.com", i))...)
	}
	return all
}()

var indexOfKinds = func() string {
	var paths []string
	for _, r := range append(widgetsOf("shop.example.com"), newKinds...) {
		paths = append(paths, fmt.Sprintf(`"apis/%[1]s/v1":{"serverRelativeURL":"/openapi/v3/apis/%[1]s/v1?hash=1"}`, r.Group))
	}
	return `{"paths":{` + strings.Join(paths, ",") + `}}`
}()

// mergingPolicy merges what is there already, so that it changes nothing. One document is
// known to be asked for; which others are, requests decide.
const mergingPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: merging}
spec:
  failurePolicy: Ignore
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {operations: ["*"], apiGroups: [shop.example.com], apiVersions: [v1], resources: [widgets]}
    - {operations: ["*"], apiGroups: ["*"], apiVersions: [v1], resources: [widgets]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'app': 'load'}}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: merging}
spec: {policyName: merging}
`

// mutating is in the process as answering, and asked about widgets.
func mutating(name string) []history.Webhook {
	all := answering(name)
	all[0].Phase, all[0].Resources = history.Mutating, []string{"widgets"}
	return all
}

// unmerged reports whether it is said that nothing was merged.
func unmerged(c *history.Call) bool {
	return strings.Contains(c.Annotations["dispatcher.dev.failed-open"], "merging (")
}

// knownKindsStay: while a document cannot be read again, what was read of it counts.
func knownKindsStay(t *findings, _ *world, rec *record) {
	for i := range rec.calls {
		if c := &rec.calls[i]; strings.HasPrefix(c.UID, "uid-") && c.Sent > rec.broken && c.Code != http.StatusTooManyRequests && unmerged(c) &&
			!strings.Contains(c.Annotations["dispatcher.dev.failed-open"], "(Shed") {
			t.Errorf("the types of a kind that were known are not any more:\n%s", rec.story(c.UID))
			return
		}
	}
}

// readWithin is how long after the API answers again all kinds are read: a look may hang for
// 10 s, and the next one at what failed comes 10 s later.
const readWithin = 22 * time.Second

// kindsAreReadAgain: what hung is read once the API answers again.
func kindsAreReadAgain(t *findings, w *world, _ *record) {
	again := &row{resources: newKinds, phases: []history.Phase{history.Mutating}, surge: 100}
	for deadline := time.Now().Add(readWithin); ; pass(500 * time.Millisecond) {
		cfg := again.surging(w)
		cfg.Duration = 500 * time.Millisecond
		failed := 0
		calls := load.Run(w.t.Context(), cfg)
		for i := range calls {
			if unmerged(&calls[i]) {
				failed++
			}
		}
		if failed == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%v after the API answers again, %d of %d objects are not merged: their kinds are not read", readWithin, failed, len(calls))
			return
		}
	}
}

// onlyAtFirst: a document without end is given up when so much of it was read as may be, and
// nobody waits for it any more.
func onlyAtFirst(t *findings, _ *world, rec *record) {
	const readBy = 3 * time.Second
	late, failed := 0, 0
	for i := range rec.calls {
		c := &rec.calls[i]
		if c.Cluster != "east" || c.Exempt || c.Sent < rec.broken+readBy || c.Sent > rec.repaired || !unmerged(c) {
			continue
		}
		failed++
		if c.Done-c.Sent-c.Stall > apiWaits*3/4 {
			late++
		}
	}
	if late > failed/10 || failed == 0 {
		t.Errorf("%d of %d calls wait for documents without end, %v after the first was asked for", late, failed, readBy)
	}
}
