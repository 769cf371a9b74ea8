// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"net/http"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

func TestPatchResponse(t *testing.T) {
	resp := webhookserver.PatchResponse(
		webhookserver.Add(webhookserver.Pointer("metadata", "labels", "a/b~c"), "x"),
		webhookserver.Add(webhookserver.Pointer("items", "-"), nil),
		webhookserver.Replace("/n", 2),
		webhookserver.Remove("/gone"),
	)
	if !resp.Allowed || resp.PatchType == nil || *resp.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("%+v", resp)
	}
	patch, err := jsonpatch.DecodePatch(resp.Patch)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Apply([]byte(`{"metadata":{"labels":{}},"items":[1],"n":1,"gone":true}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"items":[1,null],"metadata":{"labels":{"a/b~c":"x"}},"n":2}`
	if string(got) != want {
		t.Errorf("%s makes %s, want %s", resp.Patch, got, want)
	}
}

func TestPatchResponseWithoutOperations(t *testing.T) {
	if resp := webhookserver.PatchResponse(); !resp.Allowed || resp.Patch != nil || resp.PatchType != nil {
		t.Errorf("%+v", resp)
	}
}

// What should have been changed must not pass unchanged.
func TestPatchThatCannotBeWrittenDenies(t *testing.T) {
	resp := webhookserver.PatchResponse(webhookserver.Add("/a", make(chan int)))
	if resp.Allowed || resp.Result.Code != http.StatusInternalServerError || !strings.Contains(resp.Result.Message, "chan int") {
		t.Errorf("%+v", resp)
	}
}

func TestPointer(t *testing.T) {
	for want, tokens := range map[string][]string{
		"": nil, "/": {""}, "/a/0": {"a", "0"}, "/~0~1~01/~1": {"~/~1", "/"},
	} {
		if got := webhookserver.Pointer(tokens...); got != want {
			t.Errorf("Pointer(%q) = %q, want %q", tokens, got, want)
		}
	}
}
