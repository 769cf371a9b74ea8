// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The Python example reads what apimachinery writes, and the other way round.
func TestPythonExample(t *testing.T) {
	for _, test := range []struct {
		name, version, object string
		want                  admissionv1.AdmissionResponse
	}{
		{"denied", v1, `{"metadata":{"name":"wéb"}}`, admissionv1.AdmissionResponse{
			Result: &metav1.Status{Status: "Failure", Code: 403, Message: `the label "owner" is missing`},
		}},
		{"allowed", v1beta1, `{"metadata":{"name":"web","labels":{"owner":"shop"}}}`, admissionv1.AdmissionResponse{Allowed: true}},
		{"without an object", v1, "", admissionv1.AdmissionResponse{
			Result: &metav1.Status{Status: "Failure", Code: 403, Message: `the label "owner" is missing`},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := smallRequest()
			req.Object = runtime.RawExtension{Raw: []byte(test.object)}
			read, answer := runPython(t, encode(t, mediaProtobuf, review(test.version, req)))

			if diff := cmp.Diff(summary(t, test.version, req), read); diff != "" {
				t.Errorf("Python reads another review (-want +got):\n%s", diff)
			}
			want := admissionv1.AdmissionReview{TypeMeta: review(test.version, nil).TypeMeta, Response: &test.want}
			want.Response.UID = req.UID
			if diff := cmp.Diff(&want, decode(t, mediaProtobuf, answer)); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
		})
	}
}

// runPython returns what the example prints about a review, and its answer.
func runPython(t *testing.T, body []byte) (read map[string]any, answer []byte) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the Python example is not tested")
	}
	in, out := filepath.Join(t.TempDir(), "review"), filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(in, body, 0o600); err != nil {
		t.Fatal(err)
	}
	printed, err := exec.CommandContext(t.Context(), python, "../examples/python/decode_review.py", in, out).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Fatalf("%v\n%s", err, failed.Stderr)
	}
	if err := json.Unmarshal(printed, &read); err != nil {
		t.Fatalf("%v in %q", err, printed)
	}
	if answer, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	return read, answer
}

// summary is what the example prints about a request.
func summary(t *testing.T, version string, req *admissionv1.AdmissionRequest) map[string]any {
	t.Helper()
	want := map[string]any{
		"apiVersion": version, "uid": string(req.UID), "name": req.Name, "namespace": req.Namespace, "operation": string(req.Operation),
		"kind":   map[string]any{"group": req.Kind.Group, "version": req.Kind.Version, "kind": req.Kind.Kind},
		"object": nil,
	}
	if len(req.Object.Raw) > 0 {
		var object any
		if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
			t.Fatal(err)
		}
		want["object"] = object
	}
	return want
}
