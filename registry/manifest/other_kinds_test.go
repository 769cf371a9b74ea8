// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const (
	skippedYAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
	paramPolicy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n" +
		"spec: {paramKind: {apiVersion: v1, kind: ConfigMap}}\n"
)

// A Source refuses other kinds where that is asked for, whatever another Source of the same
// manifests does, and not what a policy has as params.
func TestE21OnlyKnownKinds(t *testing.T) {
	h := newHome(t)
	h.put("other.yaml", skippedYAML)
	skips := manifest.Directory(h.dir)
	r := manifest.Reader{Sources: []manifest.Source{skips, manifest.OnlyKnownKinds{Source: skips}}}
	in := r.Read(t.Context())
	if len(in.Warnings) != 1 || len(in.Problems) != 1 || !strings.Contains(in.Problems[0].Reason, "is not one that the dispatcher reads") {
		t.Errorf("warnings %v, problems %v", in.Warnings, in.Problems)
	}
	h.put("changed.yaml", skippedYAML) // what has not changed is not decoded again
	if in := r.Read(t.Context()); len(in.Warnings) != 2 || len(in.Problems) != 2 {
		t.Errorf("after a change: warnings %v, problems %v", in.Warnings, in.Problems)
	}
	h = newHome(t)
	h.put("other.yaml", skippedYAML)
	skips = manifest.Directory(h.dir)
	r = manifest.Reader{Sources: []manifest.Source{manifest.OnlyKnownKinds{Source: skips}}}
	h.put("policy.yaml", paramPolicy)
	if in := r.Read(t.Context()); len(in.Warnings)+len(in.Problems) != 0 || len(in.Objects.Params) != 1 {
		t.Errorf("params: warnings %v, problems %v, %d params", in.Warnings, in.Problems, len(in.Objects.Params))
	}
}

// A Source that has nothing but what is skipped has become empty (E12).
func TestE21SkippedObjectsAreNone(t *testing.T) {
	h := newHome(t)
	h.put("other.yaml", skippedYAML)
	r := manifest.Reader{Sources: manifest.Directories(h.dir)}
	if in := r.Read(t.Context()); in.Populated[0] {
		t.Error("a Source with skipped objects counts as populated")
	}
	policies := newHome(t)
	policies.put("policy.yaml", paramPolicy)
	r = manifest.Reader{Sources: manifest.Directories(h.dir, policies.dir)}
	if in := r.Read(t.Context()); !in.Populated[0] || !in.Populated[1] {
		t.Errorf("a Source with params is empty: %v", in.Populated)
	}
}
