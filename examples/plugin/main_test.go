// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/command"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},
"resource":{"group":"apps","version":"v1","resource":"deployments"},"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},
"object":{"metadata":{"name":"web","labels":LABELS}}}}`

func TestValidate(t *testing.T) {
	for labels, want := range map[string]string{
		`{"owner":"ann"}`: "",
		`{"app":"web"}`:   `deployments.apps "web" is forbidden: it needs the label "owner"`,
	} {
		err := plugin.WithReview([]byte(strings.Replace(review, "LABELS", labels, 1)), nil, func(a *plugin.Attributes) {
			answer, err := (&requireOwner{Label: "owner"}).Validate(t.Context(), a)
			got := ""
			if answer.Denied != nil {
				got = answer.Denied.Message
			}
			if got != want || err != nil {
				t.Errorf("%s: %q, %v", labels, got, err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// The command checks an object Plugin with it, and reports what is wrong with the
// configuration.
func TestCommand(t *testing.T) {
	for configuration, want := range map[string]string{
		"{label: owner}": "0 problems",
		"{}":             "spec.configuration.label",
		"{lable: owner}": "unknown field",
	} {
		dir := t.TempDir()
		object := "apiVersion: dispatcher.dev/v1alpha1\nkind: Plugin\nmetadata: {name: owners}\nspec: {plugin: RequireOwner, configuration: " + configuration + "}\n"
		if err := os.WriteFile(filepath.Join(dir, "plugin.yaml"), []byte(object), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code := command.Run(options(), []string{"validate", dir}, nil, &out, &out)
		if (code == 0) != (want == "0 problems") || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d\n%s", configuration, code, out.String())
		}
	}
}

// Whoever builds on the dispatcher gets what it was tested with: Go ignores the replace
// directives of dependencies.
func TestNothingIsReplaced(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod has %s", line)
		}
	}
}
